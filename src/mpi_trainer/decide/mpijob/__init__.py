"""When to act on an MPIJob: start, wait, try again, clean up, delete. Pure."""
