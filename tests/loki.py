"""A real Loki on this machine's loopback, with its files in a folder; built on first use."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tests.api.running import free_port
from tests.cluster import eventually
from tools.cluster.build import build
from tools.cluster.components import LOKI


class Loki(msgspec.Struct, frozen=True):
    """It asks nobody for a login: OpenShift Logging has a gateway before it for that."""

    address: str

    def push(self, labels: Mapping[str, str], lines: Sequence[tuple[int, str]]) -> None:
        """Lines of one stream, each with its time in nanoseconds."""
        stream = {"stream": labels, "values": [[str(at), text] for at, text in lines]}
        body = json.dumps({"streams": [stream]}).encode()
        request = urllib.request.Request(
            f"{self.address}/loki/api/v1/push",
            data=body,
            headers={"Content-Type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=30).close()


def _configuration(folder: Path, port: int, internal: int) -> dict[str, Any]:
    ring = {"instance_addr": "127.0.0.1", "kvstore": {"store": "inmemory"}}
    schema = {"from": "2020-01-01", "store": "tsdb", "object_store": "filesystem", "schema": "v13",
              "index": {"prefix": "index_", "period": "24h"}}  # fmt: skip
    loopback = {"http_listen_address": "127.0.0.1", "grpc_listen_address": "127.0.0.1"}
    return {
        "auth_enabled": False,
        "server": {"http_listen_port": port, "grpc_listen_port": internal, "log_level": "warn",
                   **loopback},
        "common": {"path_prefix": str(folder / "data"), "replication_factor": 1, "ring": ring,
                   "storage": {"filesystem": {"chunks_directory": str(folder / "chunks"),
                                              "rules_directory": str(folder / "rules")}}},
        "schema_config": {"configs": [schema]},
        "ingester": {"lifecycler": {"min_ready_duration": "0s"}},
        "limits_config": {"allow_structured_metadata": True, "volume_enabled": False},
        "analytics": {"reporting_enabled": False},
    }  # fmt: skip


@contextmanager
def serving(folder: Path) -> Iterator[Loki]:
    program = build([LOKI])[LOKI.name].bin / "loki"
    port, internal = free_port(), free_port()
    settings = folder / "loki.json"
    settings.write_text(json.dumps(_configuration(folder, port, internal)))
    address = f"http://127.0.0.1:{port}"
    with (folder / "loki.log").open("w") as log:
        server = subprocess.Popen(
            [program, f"-config.file={settings}", "-memberlist.bind-addr=127.0.0.1"],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        eventually("Loki is ready", lambda: server.poll() is not None or _ready(address), 60)
        assert server.poll() is None, (folder / "loki.log").read_text()[-2000:]
        yield Loki(address)
    finally:
        server.terminate()
        server.wait(30)


def _ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/ready", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
