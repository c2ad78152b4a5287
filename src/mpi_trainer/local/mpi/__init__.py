"""The MPI builds that local runs use."""
