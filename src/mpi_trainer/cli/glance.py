"""`odh mpijob list` and `get` as tables, fast: what the job directories say, and nothing imported.

Whatever is not plain — an option beyond the usual, a job that is missing, damaged, or has lost its
supervisor — is left to the commands themselves, which know what to do; then `answer` is None.
Guarantee: the same text as theirs. Danger: it reads `state.json` by itself, so a change of
`local.jobdir.State` must be followed here; a test compares the two.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from mpi_trainer.cli.output import terminal, words
from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.paths import jobs_dir
from mpi_trainer.sdk.client.detection import CHOICE, configured

if TYPE_CHECKING:
    from mpi_trainer.sdk.backends.backend import JobSummary

_ENDS = ("Failed", "Succeeded")
_ORDER = (*_ENDS, "Suspended", "Restarting", "Running")


class Call(SimpleNamespace):
    """What was asked for."""

    namespace: str = "default"
    everywhere: bool = False
    form: str = ""


class NotPlain(Exception):
    """Something that the full command must look at."""


def answer(args: list[str]) -> str | None:
    """The table to print; None where the full command has to run."""
    if len(args) < 2 or args[0] not in ("mpijob", "training") or args[1] not in ("list", "get"):
        return None
    if not _of_this_machine():
        return None
    try:
        call, names = _understood(args)
        if args[1] == "get":
            base = str(jobs_dir())
            jobs = [_job(base, call.namespace, name) for name in names]
        else:
            jobs = sorted(_jobs(call), key=lambda job: job.created, reverse=True)
    except (NotPlain, LocalError, OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    # An empty list has words of its own.
    return _table(jobs, call) if jobs else None


def _of_this_machine() -> bool:
    chosen = os.environ.get(CHOICE)
    return chosen == "local" if chosen else not configured()


def _understood(args: list[str]) -> tuple[Call, list[str]]:
    call, names = Call(), []
    rest = iter(args[2:])
    if args[0] == "training" and args[2:3] in (["mpijob"], ["mpijobs"]):
        next(rest)
    for word in rest:
        if word in ("-n", "--namespace"):
            call.namespace = next(rest, "-")
        elif word in ("-A", "--all-namespaces") and args[1] == "list":
            call.everywhere = True
        elif word in ("-o", "--output"):
            call.form = next(rest, "-")
        elif word.startswith("-") or args[1] == "list":
            raise NotPlain
        else:
            names.append(word)
    plain = call.form in ("", "wide", "name") and not call.namespace.startswith((".", "-"))
    if not plain or "/" in call.namespace or not call.namespace:
        raise NotPlain
    return call, names


def _jobs(call: Call) -> Iterator[JobSummary]:
    base = str(jobs_dir())
    spaces = _visible(base) if call.everywhere else [call.namespace]
    for space in spaces:
        for name in _visible(f"{base}/{space}"):
            yield _job(base, space, name)


def _visible(folder: str) -> list[str]:
    return [entry.name for entry in os.scandir(folder) if not entry.name.startswith(".")]


def _job(base: str, namespace: str, name: str) -> JobSummary:
    if "/" in name or name.startswith("."):
        raise NotPlain
    folder = f"{base}/{namespace}/{name}"
    state = json.loads(_text(f"{folder}/state.json"))
    status = state.get("status", {})
    holding = {c["type"]: c for c in status.get("conditions", ()) if c["status"] == "True"}
    found = next((kind for kind in _ORDER if kind in holding), "Created")
    if found not in _ENDS and not _alive(folder):
        raise NotPlain
    current = holding.get(found, {})
    summary = SimpleNamespace(
        key=SimpleNamespace(namespace=namespace, name=name),
        state=found,
        created=_time(state["created"]),
        reason=current.get("reason", ""),
        message=state.get("waits_for") or current.get("message", ""),
        started=_time(status.get("startTime")),
        completed=_time(status.get("completionTime")),
        workers=state["workers"],
        slots=state["slots"],
        implementation=state["implementation"],
        progress=_progress(state.get("progress")),
    )
    return cast("JobSummary", summary)


def _text(path: str) -> str:
    """A file's text; with a thousand of them, a file object for each would cost a third."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return os.read(descriptor, os.fstat(descriptor).st_size + 1).decode()
    finally:
        os.close(descriptor)


def _alive(folder: str) -> bool:
    """Whether a supervisor holds the job."""
    descriptor = os.open(f"{folder}/alive.lock", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _progress(data: dict[str, Any] | None) -> SimpleNamespace | None:
    if data is None:
        return None
    step, total = data.get("step"), data.get("total")
    fraction = None if step is None or not total else min(max(step / total, 0.0), 1.0)
    return SimpleNamespace(step=step, total=total, unit=data.get("unit", ""), fraction=fraction)


def _time(text: str | None) -> datetime:
    return cast("datetime", text and datetime.fromisoformat(text))


def _table(jobs: list[JobSummary], call: Call) -> str:
    if call.form == "name":
        return "\n".join(words.full_name(job.key.name) for job in jobs)
    wide, now = call.form == "wide", datetime.now(UTC)
    rows = [words.row(job, now, wide=wide, everywhere=call.everywhere) for job in jobs]
    return terminal.table(words.columns(wide=wide, everywhere=call.everywhere), rows)
