"""The Backend of this machine: `backend.LocalBackend`, over `local/`."""
