"""What applying a job file would do: the objects that a controller makes, and what they change."""
