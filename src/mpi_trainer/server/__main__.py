"""`python -m mpi_trainer.server`: a server for many people, behind a proxy that logs them in.

It has no login of its own: from the pod's account or a kubeconfig it takes the address of the
cluster and its authority, and nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path

from mpi_trainer.api.errors import ExplainedError
from mpi_trainer.kube import config
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.config import Config
from mpi_trainer.kube.errors import ConfigError
from mpi_trainer.kube.trust import Trust
from mpi_trainer.runtime import logs
from mpi_trainer.server.app import Settings
from mpi_trainer.server.callers import PassedOn, with_token
from mpi_trainer.server.calls import Calls
from mpi_trainer.server.log_stores.settings import INDEX, LABELS, LogStoreSettings
from mpi_trainer.server.prometheus import PrometheusSettings
from mpi_trainer.server.serve import LOOPBACK, listening, rpc, stopped

log = logging.getLogger("mpi_trainer.server")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = _flags()
    flags = parser.parse_args(arguments)
    if bool(flags.grpc_certificate) is not bool(flags.grpc_key):
        parser.error("--grpc-certificate and --grpc-key go together")
    logs.set_up(flags.log_level)
    try:
        asyncio.run(_serve(flags))
    except ExplainedError as error:
        log.error("the API cannot be served: %s. %s", error.problem, error.hint)
        sys.exit(1)
    except (ConfigError, OSError) as error:
        log.error("the API cannot be served: %s", error)
        sys.exit(1)


async def _serve(flags: argparse.Namespace) -> None:
    cluster = _cluster(flags)
    callers = PassedOn(
        cluster,
        forwarded=flags.forwarded_token,
        prometheus=_prometheus(flags),
        log_store=_log_store(flags),
        grafana=flags.grafana,
    )
    settings = Settings(hosts=frozenset(name.lower() for name in flags.name))
    calls = Calls(callers, settings.rate, settings.at_once, settings.live)
    async with AsyncExitStack() as stack:
        if flags.grpc_port is not None:
            module = rpc()
            paths = flags.grpc_certificate, flags.grpc_key
            login = module.tls(*paths) if flags.grpc_key else None
            serving = module.listening(calls, flags.host, flags.grpc_port, login)
            port = await stack.enter_async_context(serving)
            log.info("gRPC is served on %s port %d", flags.host, port)
        if flags.metrics_port is not None:
            await _metrics(flags, cluster, calls, stack)
        http = listening(callers, flags.host, flags.port, settings, calls)
        port = await stack.enter_async_context(http)
        log.info("the API is served on %s port %d", flags.host, port)
        await stopped()


async def _metrics(
    flags: argparse.Namespace, cluster: Config, calls: Calls, stack: AsyncExitStack
) -> None:
    """By TLS, for whom the cluster lets read them: asked with the reader's own token."""
    try:
        served = import_module("mpi_trainer.server.metrics").ServerMetrics(calls)
        module = import_module("mpi_trainer.runtime.metrics_server")
    except ModuleNotFoundError as error:
        raise ExplainedError(
            "metrics need a package that is not installed here",
            "Install prometheus-client, or leave out --metrics-port.",
        ) from error
    access = module.Access(module.asked_by_themselves(lambda t: Client(with_token(cluster, t))))
    context = await stack.enter_async_context(module.server_context(flags.metrics_cert_dir))
    serving = module.serve(served, access, context, flags.metrics_port, flags.host)
    port = await stack.enter_async_context(serving)
    log.info("metrics are served on %s port %d", flags.host, port)


def _log_store(flags: argparse.Namespace) -> LogStoreSettings | None:
    if not flags.log_store:
        return None
    namespace, _, pod = flags.log_store_labels.partition(",")
    return LogStoreSettings(
        flags.log_store,
        flags.log_store_ca,
        flags.log_store_tenancy,
        (namespace, pod),
        flags.log_store_kind,
        flags.log_store_index,
    )


def _cluster(flags: argparse.Namespace) -> Config:
    """What the flags say; else the cluster of a kubeconfig or of the pod's account."""
    if not flags.cluster:
        return config.load(flags.kubeconfig)
    if not flags.cluster.startswith("https://"):
        raise ConfigError(f"--cluster {flags.cluster!r} is no address such as https://HOST:6443")
    return Config(flags.cluster.rstrip("/"), trust=Trust(authority_file=flags.cluster_ca))


def _prometheus(flags: argparse.Namespace) -> PrometheusSettings | None:
    if not flags.prometheus:
        return None
    return PrometheusSettings(flags.prometheus, flags.prometheus_ca, flags.prometheus_tenancy)


def _flags() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mpi_trainer.server")
    parser.add_argument("--host", default=LOOPBACK, help="address to listen on")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--grpc-port", type=int, help="serve gRPC as well; default: REST alone")
    parser.add_argument(
        "--grpc-certificate", type=Path, help="for TLS; default: none, for a proxy with TLS"
    )
    parser.add_argument("--grpc-key", type=Path)
    parser.add_argument("--kubeconfig", help="where the cluster's address is; default: the pod's")
    parser.add_argument("--cluster", metavar="URL", help="the API server, without a kubeconfig")
    parser.add_argument("--cluster-ca", default="", metavar="FILE", help="whom it is signed by")
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        metavar="HOST",
        help="name that the server answers to, with its port where people type one; may be"
        " repeated; without it, any",
    )
    parser.add_argument(
        "--forwarded-token",
        action="store_true",
        help="also take tokens from X-Forwarded-Access-Token, as a proxy in front of it sends them",
    )
    parser.add_argument("--prometheus", metavar="URL", help="what knows what pods used over time")
    parser.add_argument("--prometheus-ca", default="", metavar="FILE", help="whom it is signed by")
    parser.add_argument(
        "--prometheus-tenancy",
        action="store_true",
        help="it takes the caller's token and a namespace, as OpenShift's port for tenants does",
    )
    parser.add_argument(
        "--grafana", default="", metavar="URL", help="a dashboard that jobs' pages link to"
    )
    parser.add_argument("--log-store", metavar="URL", help="what keeps logs of pods that are gone")
    parser.add_argument(
        "--log-store-kind",
        choices=[*LABELS],
        default="loki",
        help="what it is; OpenSearch answers as Elasticsearch  [default: %(default)s]",
    )
    parser.add_argument(
        "--log-store-index",
        default=INDEX,
        metavar="NAME",
        help="Elasticsearch's indices, a pattern  [default: %(default)s]",
    )
    parser.add_argument("--log-store-ca", default="", metavar="FILE", help="whom it is signed by")
    parser.add_argument(
        "--log-store-tenancy",
        action="store_true",
        help="it takes the caller's token, as the gateway of OpenShift Logging does",
    )
    parser.add_argument(
        "--log-store-labels",
        default="",
        metavar="NAMESPACE,POD",
        help="what the collector calls namespace and pod; default: as OpenShift's does",
    )
    parser.add_argument(
        "--metrics-port", type=int, help="serve /metrics here, by TLS; default: nowhere"
    )
    parser.add_argument(
        "--metrics-cert-dir",
        default="",
        metavar="FOLDER",
        help="with tls.crt and tls.key; default: a certificate of its own",
    )
    parser.add_argument("--log-level", default="info")
    return parser


if __name__ == "__main__":
    main()
