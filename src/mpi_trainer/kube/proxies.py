"""Which proxy leads to a server, by the rules that kubectl has.

`HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` count, in capitals or not; loopback never goes through
a proxy. Pure: the environment comes as a value.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from mpi_trainer.kube.errors import ConfigError


def proxy_for(server: str, environment: Mapping[str, str]) -> str:
    """The proxy's URL for this server, or nothing."""
    parts = urlsplit(server)
    name = f"{parts.scheme}_proxy"
    proxy = environment.get(name.upper()) or environment.get(name) or ""
    if not proxy:
        return ""
    spared = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if _spared(parts.hostname or "", port, spared):
        return ""
    return checked_proxy(proxy, name.upper())


def checked_proxy(proxy: str, field: str) -> str:
    """A proxy's URL that we can use. A message never shows it: it may hold a password."""
    text = proxy if "://" in proxy else f"http://{proxy}"
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https"):
        raise ConfigError(
            f"{field}: {parts.scheme}:// proxies are not supported; use an http:// or https:// one"
        )
    if not parts.hostname:
        raise ConfigError(f"{field}: not a URL of a proxy; write it as http://host:port")
    return text


def _spared(host: str, port: int, spared: str) -> bool:
    host = host.rstrip(".").lower()
    address = _address(host)
    if host == "localhost" or (address and address.is_loopback):
        return True
    return any(_matches(host, address, port, entry.strip().lower()) for entry in spared.split(","))


def _matches(
    host: str,
    address: ipaddress.IPv4Address | ipaddress.IPv6Address | None,
    port: int,
    entry: str,
) -> bool:
    if entry in ("", "*"):
        return entry == "*"
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, wanted = _split_port(entry)
    if wanted and wanted != str(port):
        return False
    if address:
        return address == _address(name)
    name = name.removeprefix("*")
    return host.endswith(name) if name.startswith(".") else f".{host}".endswith(f".{name}")


def _split_port(entry: str) -> tuple[str, str]:
    if entry.startswith("["):
        name, _, port = entry[1:].partition("]")
        return name, port.removeprefix(":")
    if entry.count(":") == 1:
        name, _, port = entry.partition(":")
        return name, port
    return entry, ""


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
