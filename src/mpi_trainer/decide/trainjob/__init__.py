"""When to act on a TrainJob: the same questions, where JobSet runs the pods. Pure."""
