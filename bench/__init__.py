"""Measurements: ratios within one run, each with its method. Never run as a test."""
