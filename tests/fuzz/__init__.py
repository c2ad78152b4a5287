"""The REST API against calls that nobody would think of; by hand, `make fuzz-api`."""
