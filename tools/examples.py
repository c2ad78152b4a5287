"""Keeps the programs inside the examples' manifests in step with the files beside them.

Each `mpijob.yaml` is a hand-written MPIJob, then a ConfigMap that holds the program, so that one
file is the whole job on a cluster and here. The ConfigMap is written by this tool alone.

    python -m tools.examples            writes them
    python -m tools.examples --check    names those that are out of step, and fails
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

EXAMPLES: Final = Path(__file__).parents[1] / "examples"
PROGRAMS: Final = ("hello/hello.py", "mlp/train.py", "pi/pi.c", "allreduce/allreduce.py")

_CONFIG_MAP: Final = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {job}-example
data:
  {file}: |
{text}"""


def config_map(job: str, file: str, text: str) -> str:
    """The ConfigMap as YAML; `text` has to end with a newline and begin with no space."""
    lines = (f"    {line}" if line.strip() else line for line in text.splitlines(keepends=True))
    return _CONFIG_MAP.format(job=job, file=file, text="".join(lines))


def manifest(program: Path) -> str:
    """What the `mpijob.yaml` beside the program should hold."""
    job, _, _ = (program.parent / "mpijob.yaml").read_text().partition("---\n")
    return f"{job}---\n{config_map(program.parent.name, program.name, program.read_text())}"


def main(arguments: list[str]) -> int:
    stale = 0
    for program in (EXAMPLES / name for name in PROGRAMS):
        path, wanted = program.parent / "mpijob.yaml", manifest(program)
        if path.read_text() == wanted:
            continue
        stale += 1
        if "--check" in arguments:
            name = path.relative_to(EXAMPLES.parent)
            print(f"{name} does not hold {program.name} as it is: run `python -m tools.examples`")
        else:
            path.write_text(wanted)
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
