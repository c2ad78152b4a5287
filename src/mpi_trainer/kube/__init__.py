"""The Kubernetes API client: configuration, requests as values, transport, watch, logs, exec."""
