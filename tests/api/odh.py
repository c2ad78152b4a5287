"""The real `odh` against a real API server, as somebody with a kubeconfig calls it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tests import forkserver

ODH = forkserver.INSTALLED


class Odh(msgspec.Struct, frozen=True):
    """The program with one kubeconfig, in one namespace."""

    kubeconfig: Path
    namespace: str
    env: Mapping[str, str] = {}
    program: Path | None = None

    def __call__(
        self, *words: str, code: int = 0, data: str | None = None, seconds: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Runs it to its end, which must have this exit code."""
        ended = subprocess.run(
            self.command(*words),
            input=data,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        assert ended.returncode == code, f"odh {' '.join(words)}: {ended.stdout}{ended.stderr}"
        return ended

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "-o", "json").stdout)

    def command(self, *words: str) -> list[str]:
        place = ("--kubeconfig", str(self.kubeconfig), "-n", self.namespace)
        return [str(self.program or forkserver.odh()), *place, *words]

    def environment(self) -> dict[str, str]:
        own = {
            k: v for k, v in os.environ.items() if k not in ("KUBECONFIG", "MPI_TRAINER_BACKEND")
        }
        return {**own, "NO_COLOR": "1", **self.env}
