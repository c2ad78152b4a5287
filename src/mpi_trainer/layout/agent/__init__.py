"""The sh scripts that run in the pods, as text. They need a POSIX shell and nothing else.

`LAUNCH` starts the launcher's command. `MPIEXEC` stands before the real mpiexec, where variables
cannot do the work. `RANK` stands before every rank and records its start and end.
"""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent

LAUNCH = (_HERE / "launch.sh").read_text(encoding="utf-8")
RANK = (_HERE / "rank.sh").read_text(encoding="utf-8")
MPIEXEC = (_HERE / "mpiexec.sh").read_text(encoding="utf-8")
