"""The entry point of `odh`, and its exit codes.

0 done, 1 the job failed, 2 bad usage or input or no such job, 124 time-out, 130 interrupted.
"""

from __future__ import annotations

import sys

FAILED = 1
USAGE = 2
TIMED_OUT = 124
INTERRUPTED = 130


def main() -> None:
    """The entry point of every name under which the program is installed."""
    sys.exit(_exit_code())


def _exit_code() -> int:
    try:
        from mpi_trainer.cli.app import run

        return run()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (`odh … | head`); there is nobody left to tell.
        sys.stderr.close()
        return FAILED
    except Exception as error:
        from mpi_trainer.cli.output import errors

        return errors.report(error)
