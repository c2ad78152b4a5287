"""What the loop of TrainJobs is made of."""
