"""How a job looks on Kubernetes: from a Layout to objects, one file per child kind. Pure."""
