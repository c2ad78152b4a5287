"""GET requests that go only where they should: redirects looked at, credentials kept at home.

A redirect leads to http or https only, never from https to http, and never to an address that is
more private than the one it came from: a server out there must not have us ask this machine, the
cluster or the cloud's metadata address. Credentials go to the origin that they were given for.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import SplitResult, quote, urljoin, urlsplit

import msgspec

from mpi_trainer.initializers.model import FetchError, TemporaryFault

_HOPS: Final = 8
_KEPT: Final = 4
"""connections of a thread: redirects may lead each request to another server"""
_PIECE: Final = 1 << 20
_SECONDS: Final = 60.0
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_AGAIN: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_SAFE: Final = "/%:@!$&'()*+,;=~-._"

_METADATA: Final = frozenset({"fd00:ec2::254", "100.100.100.200", "192.0.0.192", "168.63.129.16"})
"""where clouds answer beside 169.254.169.254: AWS, Alibaba, Oracle and Azure"""
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")

Origin = tuple[str, str, int]
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Answer(msgspec.Struct, frozen=True):
    """`url`: of the last request. `headers`: by name in lower case. What is not read to its end
    must be closed, for the rest of it would be taken for the next answer."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: http.client.HTTPResponse
    connection: http.client.HTTPConnection

    def close(self) -> None:
        self.body.close()
        self.connection.close()

    def pieces(self) -> Iterator[bytes]:
        """Raises TemporaryFault where it ends early."""
        try:
            while data := self.body.read(_PIECE):
                yield data
        except (OSError, http.client.HTTPException) as error:
            raise TemporaryFault(f"{shown(self.url)}: {reason(error)}") from None
        if self.body.length:
            raise TemporaryFault(f"{shown(self.url)}: the connection ended early")


class Client:
    """`bearer` goes to `home` alone. Each thread has connections of its own."""

    def __init__(self, home: str, bearer: str = "", bundle: str = "") -> None:
        self._home = origin(urlsplit(home))
        self._bearer = bearer
        self._context = trusted(bundle)
        self._local = threading.local()
        self._made: set[http.client.HTTPConnection] = set()

    def get(self, url: str, headers: Mapping[str, str]) -> Answer:
        """The answer at the end of all redirects. Raises FetchError and TemporaryFault."""
        allowed, secure = None, False
        for _ in range(_HOPS):
            parts = _parts(url)
            if secure and parts.scheme != "https":
                raise FetchError(
                    f"{shown(url)}: a redirect leads from https to http", _REDIRECT_REMEDY
                )
            secure = parts.scheme == "https"
            addresses = _addresses(parts)
            level = max(_privacy(one) for one in addresses)
            if allowed is not None and level > allowed:
                raise FetchError(
                    f"{shown(url)}: a redirect leads to an address inside this machine, the "
                    "cluster or the cloud",
                    _REDIRECT_REMEDY,
                )
            allowed = level
            answer = self._request(parts, addresses, headers)
            if answer.status not in _REDIRECTS:
                return answer
            answer.close()
            url = _joined(url, answer.headers.get("location", ""))
        raise FetchError(f"{shown(url)}: more than {_HOPS} redirects", _REDIRECT_REMEDY)

    def close(self) -> None:
        """When no thread reads any more."""
        for connection in tuple(self._made):
            self._ended(connection)

    def _request(
        self, parts: SplitResult, addresses: list[str], headers: Mapping[str, str]
    ) -> Answer:
        where = origin(parts)
        given = {"Accept-Encoding": "identity", "User-Agent": "mpi-trainer", **headers}
        if self._bearer and where == self._home:
            given["Authorization"] = f"Bearer {self._bearer}"
        path = quote(parts.path or "/", safe=_SAFE)
        path += f"?{quote(parts.query, safe=_SAFE + '?')}" if parts.query else ""
        url = parts.geturl()
        for fresh in (False, True):
            connection = self._connection(where, addresses, fresh)
            try:
                connection.request("GET", path, headers=given)
                body = connection.getresponse()
                break
            except ssl.SSLCertVerificationError as error:
                raise FetchError(
                    f"{shown(url)}: its certificate is not trusted: {error.verify_message}",
                    "Give the authority's certificates as a PEM file with CA_BUNDLE.",
                ) from None
            except (OSError, http.client.HTTPException, ValueError) as error:
                self._close(where)
                if fresh:
                    raise TemporaryFault(f"{shown(url)}: {reason(error)}") from None
        found = {name.lower(): value for name, value in body.getheaders()}
        if body.status in _AGAIN:
            body.close()
            self._close(where)
            raise TemporaryFault(f"{shown(url)}: the server answers {body.status}")
        return Answer(url, body.status, found, body, connection)

    def _connection(
        self, where: Origin, addresses: list[str], fresh: bool
    ) -> http.client.HTTPConnection:
        """An open one, if the answer before was read to its end."""
        kept: dict[Origin, http.client.HTTPConnection] = self._local.__dict__.setdefault("kept", {})
        connection = kept.pop(where, None)
        if connection is not None and not fresh and connection.sock is not None:
            kept[where] = connection
            return connection
        if connection is not None:
            self._ended(connection)
        if len(kept) == _KEPT:
            self._close(next(iter(kept)))
        scheme, host, port = where
        made: http.client.HTTPConnection
        if scheme == "https":
            made = _Https(host, port, addresses, self._context)
        else:
            made = _Http(host, port, addresses)
        kept[where] = made
        self._made.add(made)
        return made

    def _close(self, where: Origin) -> None:
        kept = self._local.__dict__.setdefault("kept", {})
        if where in kept:
            self._ended(kept.pop(where))

    def _ended(self, connection: http.client.HTTPConnection) -> None:
        connection.close()
        self._made.discard(connection)


class _Http(http.client.HTTPConnection):
    """To addresses that were looked at, whatever the name stands for a moment later."""

    def __init__(self, host: str, port: int, addresses: list[str]) -> None:
        super().__init__(host, port, timeout=_SECONDS)
        self._addresses = addresses

    def connect(self) -> None:
        self.sock = _connected(self._addresses, self.port)


class _Https(http.client.HTTPSConnection):
    def __init__(self, host: str, port: int, addresses: list[str], context: ssl.SSLContext) -> None:
        super().__init__(host, port, timeout=_SECONDS, context=context)
        self._addresses = addresses
        self._trusted = context

    def connect(self) -> None:
        plain = _connected(self._addresses, self.port)
        self.sock = self._trusted.wrap_socket(plain, server_hostname=self.host)


def _connected(addresses: list[str], port: int) -> socket.socket:
    *others, last = addresses
    for address in others:
        try:
            return socket.create_connection((address, port), _SECONDS)
        except OSError:
            continue
    return socket.create_connection((last, port), _SECONDS)


_REDIRECT_REMEDY: Final = "Give the address that the data really has, if you trust it."


def origin(parts: SplitResult) -> Origin:
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return parts.scheme, parts.hostname or "", port


def shown(url: str) -> str:
    """Without what may be a credential: signed addresses carry theirs in the query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{parts.path}"[:300]


def reason(error: BaseException) -> str:
    text = str(getattr(error, "strerror", None) or error)
    return " ".join(text.split())[:200] or type(error).__name__


def _joined(url: str, location: str) -> str:
    try:
        return urljoin(url, location)
    except ValueError:
        return location  # `_parts` says what is wrong with it


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits:
        raise FetchError(
            f"{url.partition('?')[0]!r:.200} is no address to fetch from: a redirect may lead only "
            "to http and https",
            _REDIRECT_REMEDY,
        )
    return parts


def _addresses(parts: SplitResult) -> list[str]:
    _, host, port = origin(parts)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise TemporaryFault(f"the name {host:.100} cannot be resolved: {reason(error)}") from None
    return [str(one[4][0]) for one in found]


def _privacy(address: str) -> int:
    """How near: 0 anywhere, 1 in private networks, 2 this machine, 3 what nobody redirects to."""
    found = ipaddress.ip_address(address.partition("%")[0])
    return max(_nearness(one) for one in (found, *_within(found)))


def _within(address: _Address) -> Iterator[_Address]:
    """The IPv4 address that a network would make of one of IPv6."""
    if isinstance(address, ipaddress.IPv6Address):
        yield from (one for one in (address.ipv4_mapped, address.sixtofour) if one is not None)
        if address in _NAT64:
            yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)


def _nearness(address: _Address) -> int:
    if address.is_link_local or address.is_unspecified or address.is_multicast:
        return 3
    if str(address) in _METADATA:
        return 3
    if address.is_loopback:
        return 2
    mapped = getattr(address, "ipv4_mapped", None)
    return 0 if address.is_global or mapped is not None else 1


def trusted(bundle: str) -> ssl.SSLContext:
    """The system's authorities and those of the bundle. Raises FetchError."""
    context = ssl.create_default_context()
    if bundle:
        try:
            context.load_verify_locations(bundle)
        except (OSError, ssl.SSLError) as error:
            raise FetchError(
                f"CA_BUNDLE {bundle} cannot be read: {reason(error)}",
                "Mount a PEM file with certificates into the initializer.",
            ) from None
    return context
