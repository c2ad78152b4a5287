"""The embedded executor: runs a Layout under Decisions as processes on this machine."""
