"""Whether a job's network is closed, and whom its pods may reach all the same.

Two annotations of the job say so, and an administrator's default where they are silent. Danger:
what cannot be read closes more, never less, since the controller is lenient and a closed network
that is not would be believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv6Address, ip_network

import msgspec

from mpi_trainer.api.kinds.annotations import NETWORK_EGRESS, NETWORK_POLICY, OPEN

ALL, NOTHING, CLUSTER = "all", "none", "cluster"
EGRESS_WORDS = (ALL, NOTHING, CLUSTER)
MOST_RANGES = 50
_LONGEST = 64
"""characters of one range"""


class Isolation(msgspec.Struct, frozen=True):
    """A closed network. `egress` is one of EGRESS_WORDS; `ranges` are further addresses (CIDR)."""

    egress: str = ALL
    ranges: tuple[str, ...] = ()


class IsolationDefault(msgspec.Struct, frozen=True):
    """For jobs without the annotations."""

    policy: str = OPEN
    egress: str = ALL


NO_DEFAULT = IsolationDefault()


def isolation(given: Mapping[str, str], default: IsolationDefault = NO_DEFAULT) -> Isolation | None:
    """Of a job with these annotations; None where its network is open."""
    if given.get(NETWORK_POLICY, default.policy) == OPEN:
        return None
    egress = given.get(NETWORK_EGRESS, default.egress)
    if egress in EGRESS_WORDS:
        return Isolation(egress)
    found, wrong = ranges(egress)
    return Isolation(NOTHING, () if wrong else found)


def ranges(text: str) -> tuple[tuple[str, ...], str]:
    """The address ranges of a list such as `10.0.0.0/8,fd00::/8`, and what is wrong with it."""
    listed = [part.strip() for part in text.split(",", MOST_RANGES)]
    if len(listed) > MOST_RANGES:
        return (), f"must be at most {MOST_RANGES} ranges"
    found: dict[str, None] = {}
    for one in listed:
        if "/" not in one or len(one) > _LONGEST:
            return (), "must be all, none, cluster, or ranges of addresses such as 10.0.0.0/8"
        try:
            network = ip_network(one)
        except ValueError as error:
            return (), f"must be ranges of addresses: {error}"
        if network.version == 6 and _has_no_policy(network.network_address):
            return (), f"must be ranges of addresses without scope or IPv4 within IPv6: {one!r}"
        found[str(network)] = None
    return tuple(found), ""


def _has_no_policy(address: IPv6Address) -> bool:
    """Whether an API server refuses it in a NetworkPolicy, though it can be read."""
    return address.scope_id is not None or address.ipv4_mapped is not None
