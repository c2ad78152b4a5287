"""The CustomResourceDefinitions in `manifests/crds`, made from our types and the pod API."""
