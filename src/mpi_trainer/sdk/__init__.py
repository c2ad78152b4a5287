"""What data scientists call from Python, and what the CLI is made of."""
