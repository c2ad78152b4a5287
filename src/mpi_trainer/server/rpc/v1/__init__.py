"""Code made from proto/mpitrainer/v1."""
