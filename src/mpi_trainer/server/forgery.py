"""Whether a request comes from a page of this server, or from a program. Pure.

Danger that is met here: another web site makes a browser send calls with the login that the browser
adds by itself, or reaches a server on this machine by a name that it controls (DNS rebinding).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mpi_trainer.server.problems import refused

MARK: Final = "X-Requested-With"
"""a header that no page of another site can send without being allowed to, which nobody is"""


def check_host(headers: Mapping[str, str], hosts: frozenset[str]) -> None:
    """Refuses a name that is not the server's own; any name will do where `hosts` is empty."""
    if hosts and headers.get("Host", "").lower() not in hosts:
        raise refused(
            421,
            "host",
            "this server does not answer to that name",
            f"Open {min(hosts)} instead.",
        )


def check_origin(headers: Mapping[str, str], *, changes: bool, ambient: bool) -> None:
    """Refuses what a page of another site asks for, and a change that may be its doing."""
    origin = headers.get("Origin", "")
    if origin and origin.partition("://")[2].lower() != headers.get("Host", "").lower():
        raise refused(
            403,
            "origin",
            "pages of other sites may not use this server",
            "Use the server's own address, or a program without an Origin header.",
        )
    if changes and ambient and not (origin and MARK in headers):
        raise refused(
            403,
            "origin",
            f"a change with a browser's login needs the headers Origin and {MARK}",
            f"Send {MARK}, or use `Authorization: Bearer TOKEN`.",
        )
