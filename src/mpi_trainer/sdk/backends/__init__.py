"""What runs jobs: the Backend protocol, this machine and a cluster."""
