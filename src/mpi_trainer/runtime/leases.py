"""One leader among several replicas, by a Lease object.

Guarantee: two replicas never both have time `remaining()`, whatever hangs. A leader counts from the
moment it *sent* its last renewal that succeeded, and stops at the renew deadline; others count from
the moment they first *saw* a record, and take over only a whole lease later. Clocks of different
machines are never compared, and time in which this machine slept counts.
The danger: a write that the server has accepted may still be carried out later. Writes are bounded
by `remaining()` and carry uid or resourceVersion preconditions for that reason.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, NoReturn

import msgspec

from mpi_trainer.kube import requests
from mpi_trainer.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from mpi_trainer.kube.requests import Caller
from mpi_trainer.kube.resources import LEASES
from mpi_trainer.runtime.backoff import Chance
from mpi_trainer.runtime.metrics import Metrics
from mpi_trainer.runtime.partial import Meta, Partial

log = logging.getLogger(__name__)


class Claim(msgspec.Struct, frozen=True):
    """Which lease, who we are (unique for each process), and how quickly things happen."""

    namespace: str
    name: str
    identity: str
    lease: float = 15.0
    renew: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease > self.renew > self.retry > 0:
            raise ValueError(
                f"lease times {self.lease:g}/{self.renew:g}/{self.retry:g} s: the lease must be"
                " longer than the renew deadline, and that longer than the retry period"
            )


class LeaseSpec(Partial, frozen=True, gc=False):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Partial, frozen=True, gc=False):
    metadata: Meta
    spec: LeaseSpec = LeaseSpec()


class LeaseLost(Exception):
    """We do not lead any more: the process must end, at once."""


def boot_time() -> float:
    """Seconds that pass also while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Elector:
    """`acquire`, then `keep` beside the work, then `release` once the work has stopped.

    Its client is its own: not bounded by `remaining`, which it makes, and with connections of its
    own, so that renewals never wait behind other calls.
    """

    def __init__(
        self,
        client: Caller,
        claim: Claim,
        metrics: Metrics,
        *,
        clock: Callable[[], float] = boot_time,
        chance: Chance = random.random,
    ) -> None:
        self._client = client
        self.claim = claim
        self._metrics = metrics
        self._clock = clock
        self._chance = chance
        self._until: float | None = None  # None while we do not lead
        self._held: Lease | None = None
        self._observed: tuple[Lease, float] | None = None
        self._show()

    @property
    def leading(self) -> bool:
        return self._until is not None

    def remaining(self) -> float:
        """Seconds in which we may write and wait for the answer; 0 without the lease."""
        return 0.0 if self._until is None else max(0.0, self._until - self._clock())

    async def acquire(self) -> None:
        """Wait until we lead, however long that takes."""
        while True:
            try:
                async with asyncio.timeout(self.claim.renew):
                    if await self._try():
                        break
            except (KubeError, TimeoutError) as error:
                log.warning("lease %s cannot be had yet: %s", self.claim.name, error)
            await asyncio.sleep(self.claim.retry * (1 + 1.2 * self._chance()))
        self._show()
        log.info("leading", extra={"lease": self.claim.name, "identity": self.claim.identity})

    async def try_once(self) -> bool:
        """One try, for one who has not begun with anything: whether we lead now."""
        try:
            async with asyncio.timeout(self.claim.renew / 2):
                led = await self._try()
        except (KubeError, TimeoutError) as error:
            log.info("lease %s cannot be had yet: %s", self.claim.name, error)
            led = False
        self._show()
        return led

    async def keep(self) -> NoReturn:
        """Renew until that fails for too long; then raises `LeaseLost`."""
        try:
            tried = self._clock()
            while True:
                pause = self.claim.retry - (self._clock() - tried)
                await asyncio.sleep(max(0.0, min(pause, self.remaining())))
                tried = self._clock()
                if self.remaining() <= 0:
                    raise LeaseLost(f"lease {self.claim.name} could not be renewed in time")
                try:
                    # Half the deadline, so that a dead connection leaves time for a new one.
                    async with asyncio.timeout(min(self.remaining(), self.claim.renew / 2)):
                        await self._renew()
                except (KubeError, TimeoutError) as error:
                    log.warning("lease %s was not renewed: %s", self.claim.name, error)
        except LeaseLost:
            self._give_up()
            raise

    async def release(self) -> None:
        """Let another lead at once; from here on we may not write. Never fails."""
        limit = min(self.remaining(), self.claim.retry)
        self._give_up()
        if self._held is None or limit <= 0:
            return
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _now()}
        try:
            async with asyncio.timeout(limit):
                try:
                    await self._patch(self._held, spec)
                except Conflict:
                    # A renewal that was cancelled may have been carried out all the same.
                    lease = await self._read()
                    if lease.spec.holder_identity == self.claim.identity:
                        await self._patch(lease, spec)
        except (KubeError, TimeoutError) as error:
            log.warning("lease %s was not released, it will run out: %s", self.claim.name, error)

    # --- one try -----------------------------------------------------------------------------

    async def _try(self) -> bool:
        try:
            lease = await self._read()
        except NotFound:
            return await self._create()
        ours = lease.spec.holder_identity == self.claim.identity
        if not ours and not self._free(lease):
            return False
        spec = self._spec()
        if not ours:
            spec["acquireTime"] = spec["renewTime"]
            spec["leaseTransitions"] = (lease.spec.lease_transitions or 0) + 1
        return await self._take(lambda: self._patch(lease, spec))

    async def _create(self) -> bool:
        spec = self._spec()
        body = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": self.claim.name, "namespace": self.claim.namespace},
            "spec": {**spec, "acquireTime": spec["renewTime"], "leaseTransitions": 0},
        }
        return await self._take(
            lambda: self._send(requests.create(LEASES, self.claim.namespace, body))
        )

    async def _take(self, write: Callable[[], Awaitable[Lease]]) -> bool:
        sent = self._clock()
        try:
            self._held = await write()
        except (Conflict, AlreadyExists):
            return False  # another was quicker
        until = sent + self.claim.renew
        self._until = until if until > self._clock() else None
        return self.leading

    def _free(self, lease: Lease) -> bool:
        """Whether nobody holds it, judged only by our own clock."""
        if not lease.spec.holder_identity:
            return True
        now = self._clock()
        if self._observed is None or self._observed[0].spec != lease.spec:
            self._observed = (lease, now)
        return now - self._observed[1] >= (lease.spec.lease_duration_seconds or self.claim.lease)

    async def _renew(self) -> None:
        assert self._held is not None, "acquire comes before keep"
        sent = self._clock()
        try:
            try:
                self._held = await self._patch(self._held, self._spec())
            except Conflict:
                self._metrics.lease_slow_path.labels(self.claim.name).inc()
                lease = await self._read()
                if lease.spec.holder_identity != self.claim.identity:
                    holder = lease.spec.holder_identity or "nobody"
                    raise LeaseLost(f"lease {self.claim.name} is held by {holder}") from None
                self._held = await self._patch(lease, self._spec())
        except NotFound:
            # Whoever made it anew may lead already.
            raise LeaseLost(f"lease {self.claim.name} was deleted") from None
        self._until = sent + self.claim.renew

    # --- requests ----------------------------------------------------------------------------

    async def _read(self) -> Lease:
        return await self._send(requests.get(LEASES, self.claim.namespace, self.claim.name))

    async def _patch(self, lease: Lease, spec: dict[str, Any]) -> Lease:
        """Only if the lease is still the one that we know."""
        body = {"metadata": {"resourceVersion": lease.metadata.resource_version}, "spec": spec}
        return await self._send(
            requests.patch(LEASES, self.claim.namespace, self.claim.name, body, "merge")
        )

    async def _send(self, request: requests.Request) -> Lease:
        # Tried once: repeating is our own business, under our own deadline.
        once = msgspec.structs.replace(request, tries=1, timeout=self.claim.renew / 2)
        lease: Lease = await self._client.call(once, Lease)
        return lease

    def _spec(self) -> dict[str, Any]:
        return {
            "holderIdentity": self.claim.identity,
            "leaseDurationSeconds": round(self.claim.lease),
            "renewTime": _now(),
        }

    def _give_up(self) -> None:
        self._until = None
        self._show()

    def _show(self) -> None:
        self._metrics.leads.labels(self.claim.name).set(self.leading)
        self._metrics.leads_upstream.set(self.leading)


def _now() -> str:
    """For people who read the lease; nobody judges by it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
