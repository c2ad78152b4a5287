"""Installing mpi-trainer from the files that come with `odh`: what, in which order, who may."""
