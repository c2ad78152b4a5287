"""The children that only a TrainJob has, and all of its children together. Pure."""
