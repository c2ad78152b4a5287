"""The reconciler of MPIJobs: load, decide, render, apply."""
