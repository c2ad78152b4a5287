"""The webhook's process: flags, certificates, server.

Every replica serves; none leads. On SIGTERM it stops being ready and serves on for a while, until
the API servers have closed their connections, so that no request is lost while replicas are
replaced.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Middleware

from mpi_trainer.api.kinds.annotations import OPEN, RESTRICTED
from mpi_trainer.api.kinds.network_isolation import ALL, IsolationDefault
from mpi_trainer.api.validation.network import egress_from_flag
from mpi_trainer.api.validation.worker_limits import (
    MOST_WORKERS,
    WARNED_ABOVE,
    WorkerLimits,
    most_from_flag,
)
from mpi_trainer.kube import config
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import KubeError, NotFound
from mpi_trainer.kube.requests import Request
from mpi_trainer.runtime import logs, metrics_server
from mpi_trainer.runtime.metrics import Metrics
from mpi_trainer.runtime.probes import Probes
from mpi_trainer.runtime.tls import ServerCertificate, follow_folder
from mpi_trainer.webhook import concurrency
from mpi_trainer.webhook.certificate_renewal import CertificateNames, CertificateRenewal
from mpi_trainer.webhook.endpoints import Endpoints, Settings, app
from mpi_trainer.webhook.metrics import admitted, middleware, watch_certificate
from mpi_trainer.webhook.server_checks import SECONDS, ServerChecks

_KUEUE = Request("GET", "/apis/kueue.x-k8s.io", timeout=5.0, tries=1)
_PROBE_SECONDS = 20.0

log = logging.getLogger(__name__)


class KueueProbe:
    """Whether Kueue is installed, asked every 20 seconds."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.installed = False

    async def run(self) -> None:
        while True:
            try:
                await self._client.call(_KUEUE, None)
                self.installed = True
            except NotFound:
                self.installed = False
            except KubeError as error:
                log.warning("cannot tell whether Kueue is there: %s", error)
            await asyncio.sleep(_PROBE_SECONDS)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = _flags()
    flags = parser.parse_args(arguments)
    if flags.conversion and flags.client_ca:
        parser.error("--conversion and --client-ca: API servers show no certificate to converters")
    logs.set_up(flags.log_level)
    try:
        asyncio.run(_serve(flags))
    except (KubeError, OSError) as error:
        log.error("admission cannot be served: %s", error)
        sys.exit(1)


async def _serve(flags: argparse.Namespace) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    metrics, certificate = Metrics(), ServerCertificate()
    server = config.load(flags.kubeconfig)
    async with (
        Client(server, observe=metrics.observe_call(server.server)) as client,
        Probes(None if flags.secure_metrics else metrics, ports=(flags.probe_port,)) as probes,
        AsyncExitStack() as more,
        asyncio.TaskGroup() as tasks,
    ):
        probes.ready["certificate"] = lambda: "" if certificate.ready else "there is none yet"
        if flags.secure_metrics:
            port = flags.metrics_port
            await more.enter_async_context(
                metrics_server.serve(
                    metrics,
                    metrics_server.Access(metrics_server.asked_by_us(client)),
                    certificate.context,
                    port,
                )
            )
        kueue = KueueProbe(client)
        renewal = (
            follow_folder(Path(flags.cert_dir), certificate)
            if flags.cert_dir
            else CertificateRenewal(client, _certificate_names(flags, client), certificate).run()
        )
        background = [tasks.create_task(renewal), tasks.create_task(kueue.run())]
        checks = ServerChecks(client, flags.ask_seconds)
        workers = WorkerLimits(flags.warn_workers_per_job, flags.max_workers_per_job)
        networks = IsolationDefault(flags.network_policy_default, flags.network_egress_default)
        endpoints = Endpoints(
            checks,
            flags.cluster_domain,
            lambda: kueue.installed,
            Settings(flags.maker, workers, networks),
            admitted(metrics.registry),
        )
        served = app(endpoints)
        served.middlewares.append(middleware(metrics.registry))
        watch_certificate(metrics.registry, certificate)
        if flags.client_ca:
            concurrency.ask_for_certificates(certificate.context, flags.client_ca)
            served.middlewares.append(concurrency.known_callers(flags.client_name))
        limits = concurrency.ReviewLimits(at_once=flags.at_once)
        served.middlewares.extend((concurrency.limited(limits), _closing(stop)))
        runner = web.AppRunner(served, access_log=None, handle_signals=False)
        await runner.setup()
        site = web.TCPSite(runner, None, flags.port, ssl_context=certificate.context)
        await site.start()
        log.info("admission is served on port %d", flags.port)
        await stop.wait()
        probes.ready["stopping"] = lambda: "a signal has asked for the end"
        await asyncio.sleep(flags.grace_seconds)
        await runner.cleanup()
        for task in background:
            task.cancel()


def _closing(stop: asyncio.Event) -> Middleware:
    """After the signal every response announces that it is the last on its connection.

    A connection that is closed unannounced fails the request that is just being sent on it.
    """

    @web.middleware
    async def close(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        response = await handler(request)
        if stop.is_set():
            response.force_close()
        return response

    return close


def _certificate_names(flags: argparse.Namespace, client: Client) -> CertificateNames:
    return CertificateNames(
        flags.namespace or client.config.namespace,
        service=flags.service,
        more_names=tuple(flags.host_name),
        conversion=flags.conversion,
    )


def _flags() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m mpi_trainer.webhook", description=__doc__)
    add = parser.add_argument
    add("--kubeconfig", help="where the API server is; default: as kubectl, or the pod's account")
    add("--port", type=int, default=9443, help="where admission is served, by TLS")
    add("--probe-port", type=int, default=8081, help="/healthz, /readyz and /metrics")
    add("--secure-metrics", action="store_true",
        help="/metrics on a port of their own only, by TLS, to whom the cluster lets get "
        "them")  # fmt: skip
    add("--metrics-port", type=int, default=metrics_server.PORT, help="of --secure-metrics")
    add("--namespace", default="", help="of the Secret with the certificates; default: the pod's")
    add("--service", default="mpi-trainer-webhook", help="name of the Service in front of us")
    add("--host-name", action="append", default=[], help="a further name to be called by")
    add(
        "--conversion",
        action="store_true",
        help="keep our authority in the definition of MPIJobs too, whose older versions we convert",
    )
    add("--cert-dir", default="", help="tls.crt and tls.key that somebody else keeps")
    add("--client-ca", default="",
        help="answer only callers with a certificate of this authority (PEM); API servers show "
        "one if their AdmissionConfiguration says so")  # fmt: skip
    add("--client-name", action="append", default=[],
        help="a common name that the callers' certificates may have; default: any")  # fmt: skip
    add(
        "--at-once",
        type=int,
        default=concurrency.ReviewLimits().at_once,
        help="reviews at the same time",
    )
    add("--maker", default="", help="user name of the controller, the only one to make our pods")
    add("--cluster-domain", default="", help="domain of the cluster's DNS, as the controller's")
    add("--warn-workers-per-job", type=int, default=WARNED_ABOVE, metavar="N",
        help="a job with more workers or nodes is admitted with a warning; 0: none")  # fmt: skip
    add("--max-workers-per-job", type=most_from_flag, default=MOST_WORKERS, metavar="N",
        help="a job with more is refused; set the controller's flag alike")  # fmt: skip
    add("--network-policy-default", default=OPEN, choices=(OPEN, RESTRICTED),
        help="as the controller's: a job whose network cannot be closed is refused")  # fmt: skip
    add("--network-egress-default", type=egress_from_flag, default=ALL, metavar="WHOM",
        help="as the controller's")  # fmt: skip
    add("--ask-seconds", type=float, default=SECONDS, help="longest wait for the API server")
    add("--grace-seconds", type=float, default=5.0, help="how long to serve on after SIGTERM")
    add("--log-level", default="INFO", help="DEBUG, INFO, WARNING or ERROR")
    return parser
