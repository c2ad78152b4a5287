"""The entry point of `odh`, and its exit codes.

0 done, 1 the job failed, 2 bad usage or input or no such job, 124 time-out, 130 interrupted.
Nothing slow is imported here: a plain `list` or `get` is answered by `glance` alone, a plain
`create` on a cluster by `dispatch`.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

FAILED = 1
USAGE = 2
TIMED_OUT = 124
INTERRUPTED = 130


def main() -> None:
    """The entry point of every name under which the program is installed."""
    # A short command ends before garbage matters, and looking for it is a tenth of its start.
    gc.disable()
    code = _ended(_plainly)
    if code is None:
        from mpi_trainer.cli.app import run

        code = _ended(run)
    # The interpreter looks for garbage once more before it ends; there is nobody to want it.
    gc.freeze()
    sys.exit(code)


def _plainly() -> int | None:
    """The usual calls without what only the others need; None where this is not one of them."""
    args = sys.argv[1:]
    if "create" in args:
        from mpi_trainer.cli import dispatch

        return dispatch.answer(args)
    from mpi_trainer.cli import glance

    shown = glance.answer(args)
    if shown is None:
        return None
    print(shown, flush=True)
    return 0


def _ended(work: Callable[[], int | None]) -> int | None:
    """The exit code of the work; what went wrong is turned into words and a code."""
    try:
        return work()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (`odh … | head`); there is nobody left to tell.
        sys.stderr.close()
        return FAILED
    except Exception as error:
        from mpi_trainer.cli.output import errors

        return errors.told(error)
