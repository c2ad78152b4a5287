"""What changes while somebody looks: jobs, one job, its log, as events."""
