"""A TrainJob put together with its runtime: the job that its pods are made from. Pure."""
