"""MPI training jobs on OpenShift, on Kubernetes and on one machine, from one job file."""

__version__ = "0.1.0"
