"""Renders the manifests that `odh install` ships: `src/mpi_trainer/cli/installation/bundles`.

python -m tools.bundles           write
python -m tools.bundles --check   name what is out of step, and fail

It runs kustomize by kubectl, so a machine without one builds it first (`tools/cluster`).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mpi_trainer.cli.installation.bundles import FOLDER, SOURCES
from tools.cluster.build import build
from tools.cluster.components import KUBECTL

MANIFESTS: Final = Path(__file__).parents[1] / "manifests"
_HEADER: Final = "# Made from manifests/{} by `make manifests`; not to be edited.\n"


def files() -> dict[str, str]:
    """By name within the folder."""
    kubectl = build([KUBECTL])["kubectl"].bin / "kubectl"
    return {f"{name}.yaml": _rendered(kubectl, source) for name, source in SOURCES.items()}


def _rendered(kubectl: Path, source: str) -> str:
    command = [str(kubectl), "kustomize", str(MANIFESTS / source)]
    made = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return _HEADER.format(source) + made


def stale() -> list[str]:
    made = files()
    there = {path.name: path.read_text() for path in FOLDER.glob("*.yaml")}
    return sorted(name for name in made | there if made.get(name) != there.get(name))


def main(words: Sequence[str]) -> int:
    if "--check" in words:
        old = stale()
        if old:
            print(f"error: not as manifests have them: {', '.join(old)}")
            print("\nhint: run make manifests")
        return 1 if old else 0
    FOLDER.mkdir(exist_ok=True)
    for name, text in files().items():
        (FOLDER / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
