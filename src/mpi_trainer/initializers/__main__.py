"""`python -m mpi_trainer.initializers dataset|model`: fetches what STORAGE_URI names.

Exit codes: 0 everything is there, 1 it cannot be, 143 it was asked to stop and goes on next time.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from mpi_trainer.initializers.fetch import fetch
from mpi_trainer.initializers.model import FetchError, Interrupted, Role
from mpi_trainer.initializers.report import Report
from mpi_trainer.initializers.settings import NAMES, SECRETS, settings
from mpi_trainer.initializers.sources import source

STOPPED: Final = 143
STOP_SECONDS: Final = 5.0
"""that it has to end by itself once it is asked to"""
_TERMINATION: Final = Path("/dev/termination-log")
_LONGEST_VALUE: Final = 64 << 10
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def main(words: list[str], environ: Mapping[str, str], stop: threading.Event) -> int:
    """The exit code; `stop` asks it to end soon."""
    if len(words) != 1 or words[0] not in ("dataset", "model"):
        print("usage: python -m mpi_trainer.initializers dataset|model", file=sys.stderr)
        return 2
    role: Role = "dataset" if words[0] == "dataset" else "model"
    given: dict[str, str] = {}
    try:
        given = variables(environ)
        chosen = settings(role, given)
        with closing(source(chosen)) as origin:
            fetch(chosen, origin, Report(role), stop)
    except FetchError as error:
        message, remedy = (_redacted(text, given) for text in (error.message, error.remedy))
        print(f"error: {role}: {message}\n\nhint: {remedy}", file=sys.stderr, flush=True)
        _note(f"{role}: {message}. {remedy}")
        return 1
    except Interrupted:
        print(f"{role}: stopped; what came so far is kept", file=sys.stderr, flush=True)
        return STOPPED
    return 0


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Those that are read, from files where `CREDENTIALS_DIR` has them. Raises FetchError."""
    found = {name: environ[name].strip() for name in NAMES if environ.get(name)}
    folder = environ.get("CREDENTIALS_DIR", "")
    if folder:
        for name in NAMES:
            try:
                with Path(folder, name).open("rb") as file:
                    found[name] = file.read(_LONGEST_VALUE).decode().strip()
            except (FileNotFoundError, NotADirectoryError):
                continue
            except (OSError, UnicodeDecodeError):
                raise FetchError(
                    f"{name} in CREDENTIALS_DIR cannot be read",
                    "See to the Secret, and that this user id may read its files.",
                ) from None
    return found


def _redacted(text: str, given: Mapping[str, str]) -> str:
    """Nothing that a server sends back of a credential gets into a log."""
    for name in SECRETS:
        value = given.get(name, "")
        if len(value) >= 4:
            text = text.replace(value, "***")
    return text


def _note(text: str) -> None:
    """For the kubelet, which shows it as why the container ended."""
    try:
        if _TERMINATION.is_file() and os.getpid() == 1:
            _TERMINATION.write_text(text[:4096])
    except OSError:
        pass


def _end_when_asked(asked: threading.Event) -> None:
    """In a thread of its own: others may wait long for a server, and a library for longer. Ending
    in the middle is nothing special, since a kill is not."""
    signal.sigwait(_SIGNALS)
    asked.set()
    time.sleep(STOP_SECONDS)
    os._exit(STOPPED)


if __name__ == "__main__":
    os.umask(0o002)  # a volume's group (fsGroup) may go on with it, under another user id
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    stop_asked = threading.Event()
    threading.Thread(target=_end_when_asked, args=(stop_asked,), daemon=True).start()
    sys.exit(main(sys.argv[1:], os.environ, stop_asked))
