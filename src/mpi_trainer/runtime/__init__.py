"""Machinery that both executors stand on."""
