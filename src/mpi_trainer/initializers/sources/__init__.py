"""Where data comes from: one module for each kind of address, loaded only when it is used."""

from __future__ import annotations

from mpi_trainer.initializers.model import Settings, Source


def source(settings: Settings) -> Source:
    """Raises FetchError."""
    scheme = settings.uri.partition("://")[0]
    if scheme == "s3":
        from mpi_trainer.initializers.sources.s3 import S3

        return S3(settings)
    if scheme == "hf":
        from mpi_trainer.initializers.sources.hub import Hub

        return Hub(settings)
    if scheme == "file":
        from mpi_trainer.initializers.sources.local import Local

        return Local(settings)
    from mpi_trainer.initializers.sources.web import Web

    return Web(settings)
