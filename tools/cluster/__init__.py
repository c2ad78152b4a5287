"""A real multi-node Kubernetes on one Linux machine, without Docker.

Components are built from the Go module proxy at fixed versions and hashes, and run as
plain processes: the control plane on the host, every node in its own network namespace.
Danger: profiles with nodes need root and change the host's routes; `down` takes all of it back.
"""
