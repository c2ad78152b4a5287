"""Who is asking, and the backend that acts with their rights.

`PassedOn` gives every caller a backend with the token that came with the request; the server's own
login, where it has one, is never used for anybody. `Loopback` serves the one person who started the
server on their own machine, and has the secret that was printed. Guarantee: two tokens never share
a backend, a connection or anything that was read with one of them; no token is kept in the clear
longer than its backend, or shown in an error. A token is anything that somebody sends until the
cluster has taken it (`Caller.check`).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from mpi_trainer.api.yaml import typed
from mpi_trainer.kube.config import Config
from mpi_trainer.kube.credentials import Fixed
from mpi_trainer.sdk.backends.backend import Backend
from mpi_trainer.sdk.backends.cluster.backend import ClusterBackend
from mpi_trainer.sdk.backends.log_store import LogStore, configured_log_store
from mpi_trainer.server.grafana import checked as grafana_address
from mpi_trainer.server.job_reads import JobReads
from mpi_trainer.server.log_stores import reading
from mpi_trainer.server.log_stores.settings import LogStoreSettings
from mpi_trainer.server.problems import Refused, problem, too_many
from mpi_trainer.server.prometheus import Prometheus, PrometheusSettings
from mpi_trainer.server.rates import Rate, RateLimit

FORWARDED: Final = "X-Forwarded-Access-Token"
LOGINS: Final = ("Authorization", FORWARDED)
"""headers that name a caller: of two that were sent, nobody knows which one is meant"""
MOST_CALLERS: Final = 1000
BELIEVED_SECONDS: Final = 600.0
"""for which the cluster's word that it knows a token is believed"""
PATIENCE: Final = 30.0
"""seconds for which a restart goes on whose time is over, so that it ends where that is possible"""
LONGEST_TOKEN: Final = 16 * 1024
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_JWT_PARTS: Final = 3
_SAFE_TRUST: Final = {"certificate": b"", "certificate_file": "", "key": b"", "key_file": ""}


class Login:
    """A token's backend, whether the cluster knows the token, and whose it is: `user`, empty until
    the cluster has said it."""

    def __init__(self, backend: ClusterBackend) -> None:
        self.backend = backend
        self.user = ""
        self._at: float | None = None
        self._asking: asyncio.Future[None] | None = None

    @property
    def known(self) -> bool:
        return self._at is not None

    async def check(self, expires: float | None = None) -> None:
        """Raises what the cluster says where it does not know the token; several calls ask once.
        Of a token that says that it has ended the cluster is not believed for long, but asked."""
        ended = expires is not None and time.time() >= expires
        if not ended and self._at is not None and time.monotonic() - self._at < BELIEVED_SECONDS:
            return
        if self._asking is None:
            self._asking = asyncio.ensure_future(self._ask())
            self._asking.add_done_callback(self._asked)
        await asyncio.shield(self._asking)

    async def _ask(self) -> None:
        at, self._at = time.monotonic(), None
        self.user = await self.backend.user()
        self._at = at

    def _asked(self, asking: asyncio.Future[None]) -> None:
        self._asking = None
        if not asking.cancelled():
            asking.exception()  # told to all who waited, of whom none may be left


class Caller(msgspec.Struct, frozen=True):
    """`id` tells callers apart and says nothing about their token. `ambient`: the browser adds the
    credential by itself, so another site could forge a call. `expires` is when the token says that
    it ends, in epoch seconds; only the cluster knows whether that is true. `login` is
    None where nobody else decides."""

    id: str
    backend: Backend
    ambient: bool = False
    expires: float | None = None
    prometheus: Prometheus | None = None
    grafana: str = ""
    login: Login | None = None
    reads: JobReads = msgspec.field(default_factory=JobReads)
    """of all callers; the caller's own are found by `id`"""

    @property
    def person(self) -> str:
        """Whose login it is, once it was checked: one person can have any number of tokens."""
        return (self.login.user if self.login is not None else "") or self.id

    async def check(self) -> None:
        """Raises where the login is none: before anything is read, made or kept for the caller."""
        if self.login is not None:
            await self.login.check(self.expires)

    async def user(self) -> str:
        """Who the cluster says that they are; a token is never another's later."""
        known = self.login.user if self.login is not None else ""
        return known or await self.backend.user()


class Callers(Protocol):
    def caller(self, headers: Mapping[str, str], cookies: Mapping[str, str]) -> Caller:
        """Raises a problem with status 401 where nobody known is asking."""


class PassedOn:
    """Callers of a shared server. `forwarded`: a proxy in front of it logs people in and sends
    their token in a header of its own; without such a proxy anybody could send that header, and
    gains nothing: a token is worth what the cluster says."""

    def __init__(
        self,
        config: Config,
        *,
        forwarded: bool = False,
        prometheus: PrometheusSettings | None = None,
        log_store: LogStoreSettings | None = None,
        grafana: str = "",
    ) -> None:
        self._grafana = grafana and grafana_address(grafana)
        self._log_store = log_store.checked() if log_store else None
        self._config = config
        self._prometheus = prometheus.checked() if prometheus else None
        self._forwarded = forwarded
        self._logins: OrderedDict[str, Login] = OrderedDict()
        self._reads = JobReads()
        # Each opens a connection, also for a token that the cluster will not take.
        self._new = RateLimit(Rate(at_once=200, per_second=20.0))

    def caller(self, headers: Mapping[str, str], cookies: Mapping[str, str]) -> Caller:
        token, ambient = _bearer(headers), False
        if not token and self._forwarded:
            token, ambient = headers.get(FORWARDED, ""), True
        if not token:
            raise _unauthorized("no login came with the request")
        if len(token) > LONGEST_TOKEN or not _TOKEN.fullmatch(token):
            raise _unauthorized("the login that came with the request is no bearer token")
        name = _digest(token)
        asked = Prometheus(self._prometheus, token) if self._prometheus else None
        login = self._login(name, token)
        backend, ends = login.backend, expiry(token)
        return Caller(name, backend, ambient, ends, asked, self._grafana, login, self._reads)

    def _login(self, name: str, token: str) -> Login:
        found = self._logins.pop(name, None)
        if found is None:
            wait = self._new.wait("", time.monotonic())
            if wait:
                raise too_many(wait)
            found = Login(self._made(token))
            if len(self._logins) >= MOST_CALLERS:
                self._forget_one()
        self._logins[name] = found
        return found

    def _forget_one(self) -> None:
        """Tokens that anybody made up displace nobody. An idle connection closes by itself."""
        unknown = (name for name, login in self._logins.items() if not login.known)
        del self._logins[next(unknown, next(iter(self._logins)))]

    def _made(self, token: str) -> ClusterBackend:
        """What is read of a log store is read for whoever may read logs, whichever store it is."""
        config = with_token(self._config, token)
        plain = ClusterBackend(config, say=_nobody, patience=PATIENCE)
        store: LogStore | None = reading.of(self._log_store, token) if self._log_store else None
        store = store or configured_log_store()
        if store is None:
            return plain
        reviewed = reading.Reviewed(store, plain.live.may_read_logs)
        return ClusterBackend(config, say=_nobody, log_store=reviewed, patience=PATIENCE)


class Loopback:
    """The one person who started the server. The token is good as a bearer token, and in the
    address for a browser, which gets a cookie for it."""

    def __init__(self, backend: Backend, cookie: str, token: str = "") -> None:
        self.backend = backend
        self.cookie = cookie
        self.token = token or secrets.token_urlsafe(32)
        self.session = secrets.token_urlsafe(32)
        self._reads = JobReads()

    def caller(self, headers: Mapping[str, str], cookies: Mapping[str, str]) -> Caller:
        if self.opens(_bearer(headers)):
            return Caller("loopback", self.backend, reads=self._reads)
        if _same(cookies.get(self.cookie, ""), self.session):
            return Caller("loopback", self.backend, ambient=True, reads=self._reads)
        raise _unauthorized(
            "no login came with the request, or not this server's",
            "Use the token that `odh dashboard` printed when it started.",
        )

    def opens(self, token: str) -> bool:
        return _same(token, self.token)


def with_token(config: Config, token: str) -> Config:
    """The same cluster, with this token as the only login."""
    trust = msgspec.structs.replace(config.trust, **_SAFE_TRUST)
    return msgspec.structs.replace(
        config, trust=trust, credentials=Fixed(f"Bearer {token}"), impersonation=()
    )


class _Claims(msgspec.Struct, frozen=True):
    exp: float | None = None


def expiry(token: str) -> float | None:
    """When a JSON web token ends; None of a token of another form. Nothing of it is believed but
    that it ends."""
    parts = token.split(".")
    if len(parts) != _JWT_PARTS:
        return None
    try:
        claims = base64.b64decode(parts[1] + "=" * (-len(parts[1]) % 4), b"-_", validate=True)
        return typed.decode(claims, _Claims).exp
    except (binascii.Error, msgspec.MsgspecError, ValueError):
        return None


def _bearer(headers: Mapping[str, str]) -> str:
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(errors="replace"), other.encode())


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _unauthorized(detail: str, hint: str = "Send `Authorization: Bearer TOKEN`.") -> Refused:
    return Refused(problem(401, "unauthorized", detail, hint), (("WWW-Authenticate", "Bearer"),))


def _nobody(text: str) -> None:
    """Nobody listens to what a backend says while something takes long: the caller gets an answer
    or a time-out."""
