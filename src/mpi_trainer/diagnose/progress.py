"""Progress out of log lines."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Progress(msgspec.Struct, frozen=True):
    """How far a job says it is. `metrics` are the last values it printed, such as loss."""

    step: float | None = None
    total: float | None = None
    unit: str = ""
    eta_seconds: float | None = None
    metrics: Mapping[str, float] = {}
    at: float = 0.0

    @property
    def fraction(self) -> float | None:
        if self.step is None or not self.total:
            return None
        return min(max(self.step / self.total, 0.0), 1.0)
