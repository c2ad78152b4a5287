"""The Backend of a Kubernetes or OpenShift cluster: `backend.ClusterBackend`, over `kube/`."""
