"""Runs a command and draws what it shows.

    python -m tools.picture docs/pictures/demo.svg --cd examples/mlp -- odh run -w 2 -- python a.py

The picture begins with the command at a prompt. It is not written if the command fails or shows a
path of this machine.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Final

from tools.picture.recording import record
from tools.picture.screen import Row, rows
from tools.picture.svg import svg

PROMPT: Final = "\x1b[32m$\x1b[0m \x1b[1m{}\x1b[0m\r\n"
LIMIT: Final = 300.0


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    folder = Path(options.cd)
    recording = record(options.command, folder, _environment(), options.columns, LIMIT)
    if recording.code:
        return _refuse(f"the command ended with {recording.code}:\n{recording.output}")
    text = PROMPT.format(shlex.join(options.command)) + recording.output
    private = [p for p in _private_paths() if p in text]
    if private:
        return _refuse(f"it would show a path of this machine: {private[0]}")
    shown = rows(text)
    wide = [row for row in shown if _width(row) > options.columns]
    if wide:
        line = "".join(span.text for span in wide[0])
        return _refuse(f"a line is wider than {options.columns} columns (see --columns): {line}")
    target = Path(options.file)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(svg(shown, options.title or folder.resolve().name, options.columns))
    return 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.picture", description=__doc__)
    parser.add_argument("file", help="the SVG to write")
    parser.add_argument("--cd", default=".", help="folder to run in")
    parser.add_argument("--title", help="text in the title bar (default: the folder's name)")
    parser.add_argument("--columns", type=int, default=90)
    parser.add_argument("command", nargs="+", help="after `--`")
    return parser.parse_args(arguments)


def _environment() -> dict[str, str]:
    """Programs of this Python first; colours whatever the caller's own terminal is."""
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "LINES")}
    path = f"{Path(sys.executable).parent}:{env.get('PATH', os.defpath)}"
    return {**env, "PATH": path, "TERM": "xterm-256color"}


def _private_paths() -> list[str]:
    return [
        str(p) for p in (Path.home(), Path.cwd(), Path(tempfile.gettempdir())) if p != Path("/")
    ]


def _width(row: Row) -> int:
    return row[-1].column + len(row[-1].text) if row else 0


def _refuse(why: str) -> int:
    print(f"no picture: {why}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
