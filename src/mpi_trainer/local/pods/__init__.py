"""Pods on this machine: namespaces, file systems, network, limits, and what runs in them."""
