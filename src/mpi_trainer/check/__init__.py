"""Whether a job or a runtime can work, before it is used: what reading shows, and a smoke run."""
