"""A user's own code that travels with a job: folders and functions."""
