"""Where data comes from: one module for each kind of address, loaded only when it is used."""

from __future__ import annotations

from mpi_trainer.initializers.model import FetchError, Settings, Source


def source(settings: Settings) -> Source:
    """Raises FetchError."""
    try:
        return _source(settings)
    except ModuleNotFoundError as error:
        raise FetchError(
            f"the package {error.name} is not installed, which {settings.uri} needs",
            "Install it: pip install 'openshift-ai-sdk[initializers]'.",
        ) from None


def _source(settings: Settings) -> Source:
    scheme = settings.uri.partition("://")[0]
    if scheme == "s3":
        from mpi_trainer.initializers.sources.s3 import S3

        return S3(settings)
    if scheme == "hf":
        import huggingface_hub  # noqa: F401 - a client without it is told before anything starts

        from mpi_trainer.initializers.sources.hub import Hub

        return Hub(settings)
    if scheme == "file":
        from mpi_trainer.initializers.sources.local import Local

        return Local(settings)
    from mpi_trainer.initializers.sources.web import Web

    return Web(settings)
