"""What a job's own output says about it. Pure."""
