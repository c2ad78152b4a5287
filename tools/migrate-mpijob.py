#!/usr/bin/env python3
"""`odh migrate` under the name that runbooks for moving away from an MPI operator give it.

Takes the same words: tools/migrate-mpijob.py -f mpijob.yaml --check
"""

import sys

from mpi_trainer.cli.main import main

if __name__ == "__main__":
    sys.argv[1:1] = ["migrate"]
    main()
