"""Running one job here: plan, preparation, the supervisor, and who follows it."""
