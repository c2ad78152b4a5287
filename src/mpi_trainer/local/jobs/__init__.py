"""The jobs of this machine as directories: stored, queued, logged."""
