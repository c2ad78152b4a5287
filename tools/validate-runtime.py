#!/usr/bin/env python3
"""`odh runtime test` as a program of its own, for pipelines that check runtimes before they apply
them.

Takes the same words: tools/validate-runtime.py runtime.yaml --lint-only
"""

import sys

from mpi_trainer.cli.main import main

if __name__ == "__main__":
    sys.argv[1:1] = ["runtime", "test"]
    main()
