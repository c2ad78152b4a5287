"""Gang scheduling: one file for each scheduler; `pod_groups` for what a job needs of it. Pure."""
