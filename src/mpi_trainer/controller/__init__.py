"""The loops that serve the kinds on a cluster: load, decide, render, apply."""
