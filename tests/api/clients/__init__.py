"""SDK and command line on the real API server, as their users have them."""
