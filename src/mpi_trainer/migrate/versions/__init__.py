"""One stored MPIJob in the version that a client asks for, and back without loss. Pure.

Not the conversion of job files, which tells a person of every field: an API server calls this one
for each look at an object that was stored as an older version, and it must always have an answer.
"""
