"""Admission: from a review to a response, the server that answers, its certificates."""
