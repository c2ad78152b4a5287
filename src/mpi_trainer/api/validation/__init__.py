"""The rules for each kind: `errors`, and `warnings` for what is probably not meant."""
