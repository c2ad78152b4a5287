"""Job descriptions of other APIs and services as ours, with a report of every field. Pure."""
