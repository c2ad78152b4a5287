"""Runs the controller."""

import sys

from mpi_trainer.controller.main import main

sys.exit(main())
