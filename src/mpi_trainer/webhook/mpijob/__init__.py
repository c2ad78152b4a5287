"""Admission of MPIJobs."""
