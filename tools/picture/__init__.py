"""Pictures of a terminal, made from real runs: the README shows what the program does today."""
