"""REST over the Backend: for programs that are not Python, and for a browser."""
