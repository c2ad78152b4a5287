"""The children that only an MPIJob has, and all of its children together. Pure."""
