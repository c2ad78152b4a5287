"""Admission on the real API server: who serves it here, and the jobs that it is shown."""
