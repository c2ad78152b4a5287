"""A job's progress while somebody waits: one line that changes.

In a notebook an HTML card is replaced in place, on a terminal the line is written over; anywhere
else a line is printed when the state changes and not for every step. Nothing needs a widget.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, TextIO

from mpi_trainer.sdk.job.events import Show
from mpi_trainer.sdk.job.state import JobState


def progress_display(stream: TextIO | None = None) -> Show:
    """The way to show states that fits where we are."""
    stream = stream or sys.stderr
    if _in_notebook():
        return _Card()
    if stream.isatty():
        return _Line(stream)
    return _Log(stream)


def progress_text(state: JobState) -> str:
    """`train: Running, epoch 3/10 (30 %), 12 s left`."""
    parts = [state.state]
    if state.failed and state.message:
        parts = [f"{state.state}: {state.message}"]
    elif state.waits_for:
        parts.append(f"waits for {state.waits_for}")
    progress = state.progress
    if progress is not None and progress.step is not None and not state.finished:
        of = "" if progress.total is None else f"/{progress.total:g}"
        share = "" if progress.fraction is None else f" ({progress.fraction:.0%})"
        parts.append(f"{progress.unit} {progress.step:g}{of}{share}".strip())
        if progress.eta_seconds is not None:
            parts.append(f"{progress.eta_seconds:.0f} s left")
    return f"{state.name}: {', '.join(parts)}"


class _Line:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __call__(self, state: JobState) -> None:
        text = " ".join(progress_text(state).split())
        end = "\n" if state.finished else ""
        self._stream.write(f"\r\x1b[2K{text}{end}")
        self._stream.flush()


class _Log:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._last = ""

    def __call__(self, state: JobState) -> None:
        if state.state != self._last:
            self._last = state.state
            print(progress_text(state), file=self._stream, flush=True)


class _Card:
    def __init__(self) -> None:
        self._handle: Any = None

    def __call__(self, state: JobState) -> None:
        if self._handle is not None:
            self._handle.update(state)
            return
        display: Any = import_module("IPython.display")
        self._handle = display.display(state, display_id=True)


def _in_notebook() -> bool:
    """Whether an IPython kernel runs this; IPython is asked, never imported for it."""
    shell = sys.modules.get("IPython")
    current: Any = shell.get_ipython() if shell is not None else None
    return current is not None and hasattr(current, "kernel")
