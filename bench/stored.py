"""What objects take in etcd: the bytes of their values, by kind, as the API server has stored them.

    python -m bench.stored CLUSTER NAMESPACE

Read from etcd itself, so that it counts what the API server writes and not what it shows: protobuf
for its own kinds, JSON for others, managed fields included. Events are told apart, since they go
after an hour, and so is what jobs share.
"""

from __future__ import annotations

import base64
import collections
import http.client
import json
import ssl
import sys
import time
from collections.abc import Iterator
from typing import Final

from tools.cluster.addresses import Port
from tools.cluster.spec import Spec, load

EVENTS: Final = "events"
SHARED: Final = "configmaps, shared"
"""the agent's scripts, which jobs of a namespace share and which go when none needs them"""
_ROOT: Final = "/registry/"
_PAGE: Final = 500


def stored(spec: Spec, namespace: str) -> dict[str, int]:
    """Kind -> bytes of all its objects in the namespace."""
    found: collections.Counter[str] = collections.Counter()
    for key, size in _values(spec):
        kind, inside, _ = key.removeprefix(_ROOT).partition(f"/{namespace}/")
        if not inside:
            continue
        shared = kind == "configmaps" and f"/{namespace}/mpi-agent-" in key
        found[SHARED if shared else kind.rpartition("/")[2]] += size
    return dict(sorted(found.items()))


def settled(spec: Spec, namespace: str, seconds: float = 60.0) -> dict[str, int]:
    """The same when nothing goes or comes any more: JobSet removes what has ended by and by."""
    end = time.monotonic() + seconds
    before, now = None, stored(spec, namespace)
    while before != now and time.monotonic() < end:
        time.sleep(3.0)  # between two looks; the loop has a deadline
        before, now = now, stored(spec, namespace)
    return now


def lasting(found: dict[str, int]) -> int:
    """All that stays for as long as the jobs do."""
    return sum(size for kind, size in found.items() if kind not in (EVENTS, SHARED))


def grown(now: dict[str, int], before: dict[str, int]) -> dict[str, int]:
    return {kind: size - before.get(kind, 0) for kind, size in now.items()}


def _values(spec: Spec) -> Iterator[tuple[str, int]]:
    pki = spec.state / "pki"
    tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    tls.load_cert_chain(str(pki / "apiserver.crt"), str(pki / "apiserver.key"))
    port = spec.addresses.port(Port.ETCD)
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=tls)
    begin, end = _ROOT.encode(), b"/registry0"
    try:
        while True:
            asked = {"key": _coded(begin), "range_end": _coded(end), "limit": _PAGE}
            connection.request("POST", "/v3/kv/range", json.dumps(asked))
            answer = json.loads(connection.getresponse().read())
            for pair in answer.get("kvs", ()):
                begin = base64.b64decode(pair["key"])
                yield begin.decode(), len(base64.b64decode(pair.get("value", "")))
            if not answer.get("more"):
                return
            begin += b"\0"
    finally:
        connection.close()


def _coded(text: bytes) -> str:
    return base64.b64encode(text).decode()


if __name__ == "__main__":
    spec = load(sys.argv[1])
    if spec is None:
        sys.exit(f"there is no cluster {sys.argv[1]}")
    made = stored(spec, sys.argv[2])
    for name, number in made.items():
        print(f"{number:10d}  {name}")
    print(f"{lasting(made):10d}  all that stays")
