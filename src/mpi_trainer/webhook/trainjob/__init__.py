"""Admission of TrainJobs and their runtimes."""
