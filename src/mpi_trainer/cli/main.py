"""The entry point of `odh`, and its exit codes.

0 done, 1 the job failed, 2 bad usage or input or no such job, 124 time-out, 130 interrupted.
Nothing slow is imported here: a plain `list` or `get` is answered by `glance` alone.
"""

from __future__ import annotations

import gc
import sys

FAILED = 1
USAGE = 2
TIMED_OUT = 124
INTERRUPTED = 130


def main() -> None:
    """The entry point of every name under which the program is installed."""
    # A short command ends before garbage matters, and looking for it is a tenth of its start.
    gc.disable()
    from mpi_trainer.cli import glance

    try:
        shown = glance.answer(sys.argv[1:])
        if shown is not None:
            print(shown, flush=True)
            sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output went away (`odh … | head`); there is nobody left to tell.
        sys.stderr.close()
        sys.exit(FAILED)
    from mpi_trainer.cli.root import run

    run()
