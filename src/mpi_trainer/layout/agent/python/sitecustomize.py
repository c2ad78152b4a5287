"""Tells when a rank's Python program has failed, before it waits in MPI_Finalize for ever; and, on
SIGURG, where it is.

An uncaught exception, or sys.exit with a failure, ends the program; mpi4py then finalizes MPI at
exit and waits for ranks that wait for this one. Nothing is changed but this: at the very exit, a
file beside the rank's record says why. Guarantee: never raises, prints nothing, works from Python
3.6 on, and the environment's own `sitecustomize` runs as if this were not here. Only the rank's
own program writes, not the programs that it starts: they do not inherit the variable.
"""

# ruff: noqa: PTH100, PTH104, PTH105, PTH118, PTH119, PTH120, PTH123
# pathlib would cost every rank ten milliseconds.

import atexit
import importlib
import os
import sys


def _next_sitecustomize() -> None:
    """Import the module that this one hides, if there is one."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != here]
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    rest = os.pathsep.join(p for p in paths if p and os.path.abspath(p) != here)
    if rest:
        os.environ["PYTHONPATH"] = rest
    else:
        os.environ.pop("PYTHONPATH", None)
    mine = sys.modules.pop(__name__, None)
    try:
        importlib.import_module("sitecustomize")
    except ImportError:
        if mine is not None:
            sys.modules[__name__] = mine


def _leave(record: str, kind: str, text: str) -> None:
    """A complete file beside the rank's record, or none."""
    try:
        temporary = os.path.join(os.path.dirname(record), "." + os.path.basename(record) + kind)
        with open(temporary, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        os.replace(temporary, record + kind)
    except Exception:
        pass


def _tell_a_foreign_mpi(record: str) -> None:
    """A program with Open MPI's library that Hydra has started is alone in a world of its own."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            if "/libopen-pal" in maps.read():
                _leave(record, ".foreign", f"pid={os.getpid()}\n")
    except Exception:
        pass


def _tell_where_on_signal(record: str) -> None:
    """On SIGURG the stack of the main thread is added to a file beside the record, from within
    whatever call it is in; on SIGWINCH `returned`, when it is back in the interpreter. Both are
    ignored by whoever does not handle them, so they never end a process, and calls that they
    interrupt are restarted: one signal for both would make them fail with EINTR. The file is
    renamed when the program ends: then nobody asks any more."""
    try:
        # The module `signal` would cost every rank two milliseconds.
        import _signal  # type: ignore[import-not-found]
        import faulthandler

        urgent, window = _signal.SIGURG, _signal.SIGWINCH
        if {_signal.getsignal(urgent), _signal.getsignal(window)} != {_signal.SIG_DFL}:
            return
        owner, folder, name = os.getpid(), os.path.dirname(record), os.path.basename(record)
        path = os.path.join(folder, "." + name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        file = os.open(path + ".stack", flags, 0o600)
        known = os.fstat(file).st_ino

        def returned(number, frame):  # type: ignore[no-untyped-def]
            try:
                if os.fstat(file).st_ino == known:
                    os.write(file, b"returned\n")
            except OSError:
                pass

        def stop() -> None:
            if os.getpid() == owner:
                try:
                    faulthandler.unregister(urgent)
                    _signal.signal(window, _signal.SIG_DFL)
                    os.rename(path + ".stack", path + ".ending")
                except Exception:
                    pass

        _signal.signal(window, returned)
        _signal.siginterrupt(window, False)
        faulthandler.register(urgent, file, all_threads=False)
        # Runs last of all exit functions, because it is registered first.
        atexit.register(stop)
    except Exception:
        pass


def _watch_the_exit(record: str) -> None:
    owner = os.getpid()

    def write(what: str, where: str) -> None:
        """Runs first of all exit functions, because it is registered last."""
        if os.getpid() == owner:
            text = f"pid={owner}\nwhere={_word(where)}\nwhat={_line(what)}\n"
            _leave(record, ".raised", text)

    before = sys.excepthook

    def hook(kind, value, trace):  # type: ignore[no-untyped-def]
        # Set by the interpreter for an uncaught exception only, not when a program calls the hook.
        if getattr(sys, "last_value", None) is value:
            atexit.register(write, f"{kind.__name__}: {value}", _place(trace))
        before(kind, value, trace)

    class Leaving(SystemExit):
        """A SystemExit that knows, when it is gone, whether anybody has caught it."""

        def __del__(self) -> None:
            # No frame below: the interpreter itself has taken it and is about to end.
            if sys._getframe().f_back is None and self.code not in (None, 0, False):
                atexit.register(write, f"sys.exit({self.code!r})", "")

    Leaving.__name__ = Leaving.__qualname__ = "SystemExit"
    Leaving.__module__ = "builtins"

    def leave(status=None):  # type: ignore[no-untyped-def]
        raise Leaving(status) if status is not None else Leaving()

    leave.__name__ = leave.__qualname__ = "exit"
    leave.__doc__ = sys.exit.__doc__
    sys.excepthook = hook
    sys.exit = leave


def _line(text: str) -> str:
    return " ".join(text.split())[:300]


def _word(text: str) -> str:
    return "".join("_" if c.isspace() else c for c in text)[-200:] or "-"


def _place(trace) -> str:  # type: ignore[no-untyped-def]
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


_record = os.environ.pop("MPI_TRAINER_RECORD", "")
_next_sitecustomize()
if _record:
    _tell_where_on_signal(_record)
    _watch_the_exit(_record)
    if "PMI_RANK" in os.environ and "OMPI_COMM_WORLD_RANK" not in os.environ:
        atexit.register(_tell_a_foreign_mpi, _record)
