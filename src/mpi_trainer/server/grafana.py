"""Where a person reads more of a job: the address of a Grafana dashboard, for links.

Nothing is asked of it, and no login goes there. Guarantee: a link leads to a web page and holds no
credentials; what is added to it is encoded by whoever adds it.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from mpi_trainer.kube.errors import ConfigError


def checked(url: str) -> str:
    """The address without a query; ConfigError where a browser should not be sent there."""
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and url.isprintable()
        sound = sound and not (parts.username or parts.password or parts.query or parts.fragment)
        sound = sound and not set(url) & set(' "<>\\^`{|}') and (parts.port or 1) > 0
    except ValueError:
        sound = False
    if not sound:
        raise ConfigError(
            f"--grafana {url!r} is no address such as https://HOST/d/mpijob-overview,"
            " without a login and without parameters"
        )
    return url.rstrip("/")
