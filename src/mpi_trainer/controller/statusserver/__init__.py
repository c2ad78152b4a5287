"""The status endpoint: what training programs tell of their progress, and who may tell it."""
