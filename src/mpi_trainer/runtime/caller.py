"""The API client as far as this package asks single questions of it."""

from __future__ import annotations

from typing import Any, Protocol

from mpi_trainer.kube.requests import Request


class Caller(Protocol):
    """`kube.client.Client` is one."""

    async def call(self, request: Request, kind: Any = ...) -> Any:
        """The decoded answer; raises `KubeError`."""
