"""A real Prometheus on this machine's loopback, of Debian's package, and pages for it to read.

The pages are ours and only look like those of a kubelet's cAdvisor and NVIDIA's DCGM exporter: no
container and no GPU is behind them. Prometheus, its scraping, storage and queries are real.
"""

from __future__ import annotations

import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec

from tests.api.running import free_port
from tests.cluster import eventually
from tests.prometheus_package import program


class Pod(msgspec.Struct, frozen=True):
    """`cpus` are used from the beginning of time on. `exported`: with the label names that a
    scrape without honor_labels leaves of a GPU's."""

    namespace: str
    name: str
    cpus: float
    memory: int
    gpu: float | None = None
    exported: bool = False


def page(pods: tuple[Pod, ...]) -> str:
    lines: list[str] = []
    for pod in pods:
        where = f'namespace="{pod.namespace}",pod="{pod.name}"'
        container = f'{where},container="main"'
        used = pod.cpus * time.time()
        lines.append(f"container_cpu_usage_seconds_total{{{container}}} {used:.3f}")
        whole = f'{where},container=""'
        lines.append(f"container_cpu_usage_seconds_total{{{whole}}} {10 * used:.3f}")
        lines.append(f"container_memory_working_set_bytes{{{container}}} {pod.memory}")
        lines.append(f"container_network_receive_bytes_total{{{where}}} {1000 * time.time():.0f}")
        if pod.gpu is not None:
            its = where.replace("namespace", "exported_namespace").replace("pod=", "exported_pod=")
            labels = its if pod.exported else where
            lines.append(f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",{labels}}} {pod.gpu}')
            lines.append(f'DCGM_FI_DEV_FB_USED{{gpu="0",{labels}}} 1024')
    return "\n".join(lines) + "\n"


@contextmanager
def prometheus(pods: tuple[Pod, ...], folder: Path) -> Iterator[str]:
    """Its address, once it has read the pods' figures twice."""

    class Exporter(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = page(pods).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    port = free_port()
    with _serving(Exporter) as source:
        (folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s}\n"
            "scrape_configs:\n"
            "- {job_name: pages, honor_labels: true, static_configs: "
            f"[{{targets: ['127.0.0.1:{source}']}}]}}\n"
        )
        words = [
            str(program("prometheus")),
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        with (folder / "prometheus.log").open("w") as log:
            process = subprocess.Popen(words, stdout=log, stderr=log)
        address = f"http://127.0.0.1:{port}"
        try:
            eventually("Prometheus has read the page twice", lambda: _read(address))
            yield address
        finally:
            process.terminate()
            process.wait(30)


class Seen(msgspec.Struct):
    """What came through a proxy."""

    logins: list[str] = []
    namespaces: list[str] = []
    refuse: bool = False


@contextmanager
def tenants_port(address: str, seen: Seen) -> Iterator[str]:
    """What stands before a Prometheus of OpenShift, as far as a client can tell: it notes token and
    namespace, and passes the query on or refuses it. It decides nothing by itself."""

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            given: Mapping[str, list[str]] = parse_qs(urlsplit(self.path).query)
            seen.logins.append(self.headers.get("Authorization", ""))
            seen.namespaces += given.get("namespace", [""])
            if seen.refuse:
                self.send_response(403)
                self.end_headers()
                return
            with urllib.request.urlopen(f"{address}{self.path}") as answer:
                body = answer.read()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    with _serving(Proxy) as port:
        yield f"http://127.0.0.1:{port}"


def _read(address: str) -> bool:
    asked = "count_over_time(container_memory_working_set_bytes[1m])>2"
    try:
        with urllib.request.urlopen(f"{address}/api/v1/query?query={asked}") as answer:
            return b'"metric"' in answer.read()
    except OSError:
        return False


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
