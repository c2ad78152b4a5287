"""odh: one file per verb. Data goes to standard output, everything else to standard error."""
