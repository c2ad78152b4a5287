"""Lines of pods that are gone, out of the log store of a cluster."""
