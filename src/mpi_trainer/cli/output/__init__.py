"""What is printed: tables, JSON, YAML, errors, live views."""
