"""From YAML or JSON text to typed jobs, every mistake at once, with its place. Pure."""
