"""What a public Go controller makes of jobs, beside what we make of them."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.cluster import Kubectl, eventually

Object = dict[str, Any]
Key = tuple[str, str]


class Sides(msgspec.Struct, frozen=True):
    """What each side made, by kind and name."""

    theirs: dict[Key, Object]
    ours: dict[Key, Object]


class Upstream(msgspec.Struct, frozen=True):
    """How to start a Go controller, and the kinds of what it makes."""

    argv: Sequence[str]
    env: Mapping[str, str]
    kinds: str

    def made(self, kubectl: Kubectl, wanted: set[Key], log: Path) -> dict[Key, Object]:
        """Runs it until all that is wanted is there; the controller ends in any case."""
        seen: dict[Key, Object] = {}
        with log.open("wb") as output:
            running = subprocess.Popen(
                self.argv, env=dict(self.env), stdout=output, stderr=subprocess.STDOUT
            )
            try:

                def all_there() -> bool:
                    assert running.poll() is None, f"upstream ended: {log.read_text()[-2000:]}"
                    seen.update(self._listed(kubectl))
                    return wanted <= seen.keys()

                try:
                    eventually("upstream's objects", all_there, seconds=240)
                except AssertionError as error:
                    missing = sorted(wanted - seen.keys())
                    raise AssertionError(f"{error}: {missing}\n{log.read_text()[-3000:]}") from None
            finally:
                running.send_signal(signal.SIGTERM)
                try:
                    running.wait(20)
                except subprocess.TimeoutExpired:
                    running.kill()
                    running.wait()
        return seen

    def _listed(self, kubectl: Kubectl) -> dict[Key, Object]:
        return by_key(json.loads(kubectl("get", self.kinds, "-o", "json"))["items"])


def by_key(objects: Sequence[Object]) -> dict[Key, Object]:
    return {(one["kind"], one["metadata"]["name"]): one for one in objects}
