"""The controller's command line: our flags, and the public operator's, which keep their meaning.

Flags of the public operator that have no meaning here are accepted and said to be without effect,
so that a Deployment made for it starts. Go writes `-flag` and `--flag` alike; so may one here.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Sequence

import msgspec

from mpi_trainer.api.kinds.annotations import OPEN, RESTRICTED
from mpi_trainer.api.kinds.network_isolation import (
    ALL,
    EGRESS_WORDS,
    NO_DEFAULT,
    IsolationDefault,
)
from mpi_trainer.api.validation.network import egress_from_flag
from mpi_trainer.api.validation.worker_limits import MOST_WORKERS, most_from_flag
from mpi_trainer.runtime import metrics_server
from mpi_trainer.runtime.key_pairs import ECDSA, RSA, KeyType

WITHOUT_EFFECT = (
    "threadiness",
    "kube-api-qps",
    "kube-api-burst",
    "controller-queue-rate-limit",
    "controller-queue-burst",
    "master",
    "alsologtostderr",
    "logtostderr",
    "log_backtrace_at",
    "log_dir",
    "log_file",
    "log_file_max_size",
    "add_dir_header",
    "one_output",
    "skip_headers",
    "skip_log_headers",
    "stderrthreshold",
    "v",
    "vmodule",
)
_SWITCHES = ("alsologtostderr", "logtostderr", "add_dir_header", "one_output")
_TRUE = ("true", "on", "yes", "1")
_FALSE = ("false", "off", "no", "0")
_LAST_PORT = 65535


class Flags(msgspec.Struct, frozen=True):
    namespaces: tuple[str, ...] = ()
    kubeconfig: str = ""
    context: str = ""
    lock_namespace: str = "mpi-operator"
    lease: tuple[float, float, float] = (15.0, 10.0, 2.0)
    leader_elect: bool = True
    cluster_domain: str = ""
    workers: int = 64
    ports: tuple[int, ...] = (8080,)
    secure_metrics: int = 0
    metrics_cert_dir: str = ""
    gang_scheduling: str = ""
    schedule_timeout: int = 300
    scripts_keep: float = 600.0
    log_tail: bool = True
    max_workers: int = MOST_WORKERS
    ssh_key_type: KeyType = ECDSA
    log_level: str = "info"
    beside_upstream: bool = False
    trainjobs: bool = True
    status_port: int = 0
    status_service: str = ""
    runtimes: tuple[str, ...] = ()
    release: bool = False
    isolation: IsolationDefault = NO_DEFAULT
    ignored: tuple[str, ...] = ()


def parse(arguments: Sequence[str]) -> Flags:
    parser = _parser()
    given = parser.parse_args([_doubled(a) for a in arguments])
    ignored = [n for n in WITHOUT_EFFECT if getattr(given, n.replace("-", "_")) is not None]
    metrics_port = given.metrics_port or given.monitoring_port
    secure_port = (metrics_port or metrics_server.PORT) if given.secure_metrics else 0
    ports = [given.health_port, 0 if secure_port else metrics_port]
    status_port = given.status_port if given.trainjobs else 0
    lease = (given.lease_duration, given.renew_deadline, given.retry_period)
    if not lease[0] > lease[1] > lease[2] > 0:
        parser.error(
            "--lease-duration must be longer than --renew-deadline, and that longer than "
            "--retry-period"
        )
    for port in (secure_port, status_port):
        if port and (port in ports or secure_port == status_port):
            parser.error(f"port {port} can be used once: give another one for each of them")
    return Flags(
        namespaces=_listed(given.namespaces),
        kubeconfig=given.kubeconfig,
        context=given.context,
        lock_namespace=given.lock_namespace,
        lease=lease,
        leader_elect=given.leader_elect,
        cluster_domain=given.cluster_domain,
        workers=given.workers,
        ports=tuple(dict.fromkeys(p for p in ports if p)),
        secure_metrics=secure_port,
        metrics_cert_dir=given.metrics_cert_dir,
        gang_scheduling=given.gang_scheduling,
        schedule_timeout=given.schedule_timeout_default,
        scripts_keep=given.agent_scripts_keep,
        log_tail=given.log_tail,
        max_workers=given.max_workers_per_job,
        ssh_key_type=given.ssh_key_type,
        log_level=given.log_level,
        beside_upstream=given.beside_upstream,
        trainjobs=given.trainjobs,
        status_port=status_port,
        status_service=given.status_service,
        runtimes=_listed(given.trainjob_runtimes),
        release=given.release,
        isolation=IsolationDefault(given.network_policy_default, given.network_egress_default),
        ignored=tuple(ignored),
    )


def _parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="python -m mpi_trainer.controller",
        description="Serves MPIJobs and TrainJobs on a cluster.",
        allow_abbrev=False,
    )
    _where(top)
    _how(top)
    for name in WITHOUT_EFFECT:
        needs = {"nargs": "?", "const": "true"} if name in _SWITCHES else {}
        top.add_argument(f"--{name}", default=None, help=argparse.SUPPRESS, **needs)  # type: ignore[arg-type]
    return top


def _where(top: argparse.ArgumentParser) -> None:
    home = os.environ.get("POD_NAMESPACE", "mpi-operator")
    own = os.environ.get("KUBEFLOW_NAMESPACE", "")
    add = top.add_argument
    add("--namespaces", "--namespace", action="append", default=[own] if own else [],
        metavar="A,B", help="serve only these; no rights outside them are needed")  # fmt: skip
    add("--kubeconfig", "--kubeConfig", default="", metavar="FILE", help="outside a cluster")
    add("--context", default="", metavar="NAME", help="of the kubeconfig")
    add("--lock-namespace", default=home, metavar="NAME", help=f"of the lease ({home})")
    add("--leader-elect", type=_switch, nargs="?", const=True, default=True,
        help="off only where nothing else can run")  # fmt: skip
    add("--lease-duration", type=_seconds, default=15.0, metavar="S", help="seconds (15)")
    add("--renew-deadline", type=_seconds, default=10.0, metavar="S", help="seconds (10)")
    add("--retry-period", type=_seconds, default=2.0, metavar="S", help="seconds (2)")
    add("--beside-upstream", type=_switch, nargs="?", const=True, default=False,
        help="run although the public MPI operator does")  # fmt: skip
    add("--trainjobs", type=_switch, nargs="?", const=True, default=True,
        help="serve TrainJobs too, where they and JobSets are installed (on)")  # fmt: skip
    add("--trainjob-runtimes", action="append", default=[], metavar="A,B",
        help="serve only TrainJobs of these runtimes, and leave others alone")  # fmt: skip
    add("--release", action="store_true",
        help="let go of all launcher pods, and end; before uninstalling")  # fmt: skip


def _how(top: argparse.ArgumentParser) -> None:
    add = top.add_argument
    add("--cluster-domain", default="", metavar="DOMAIN", help="in hostfiles, e.g. cluster.local")
    add("--workers", type=_at_least(1), default=64, metavar="N",
        help="jobs looked at at once, of one namespace half as many (64)")  # fmt: skip
    add("--health-port", type=_port, default=8080, metavar="PORT", help="probes, metrics; 0: none")
    add("--metrics-port", type=_port, default=0, metavar="PORT", help="another port for metrics")
    add("--monitoring-port", type=_port, default=0, metavar="PORT", help="the same")
    add("--secure-metrics", type=_switch, nargs="?", const=True, default=False,
        help="metrics on their port (8443) only, by TLS, to whom the cluster lets "
        "get /metrics (off)")  # fmt: skip
    add("--metrics-cert-dir", default="", metavar="FOLDER",
        help="tls.crt and tls.key for them; else made at start")  # fmt: skip
    add("--status-port", type=_port, default=0, metavar="PORT",
        help="where training programs tell their progress, by TLS; every pod of a TrainJob is told "
        "how (0: nowhere)")  # fmt: skip
    add("--status-service", default="mpi-trainer-status", metavar="NAME",
        help="the Service in front of that port, in the lock namespace")  # fmt: skip
    add("--gang-scheduling", default="", metavar="NAME",
        help="of MPIJobs: volcano, or the name of a scheduler with coscheduling")  # fmt: skip
    add("--schedule-timeout-default", type=_at_least(0), default=300, metavar="S",
        help="for jobs without scheduleTimeoutSeconds (300); 0: none")  # fmt: skip
    add("--agent-scripts-keep", type=_seconds, default=600.0, metavar="S",
        help="in a namespace without running jobs (600)")  # fmt: skip
    add("--max-workers-per-job", type=most_from_flag, default=MOST_WORKERS, metavar="N",
        help=f"a new job with more workers or nodes fails ({MOST_WORKERS}); set the webhook's flag "
        "alike")  # fmt: skip
    add("--ssh-key-type", default=ECDSA, choices=(ECDSA, RSA),
        help=f"of the key pairs that are made for jobs ({ECDSA}); {RSA} takes about a second "
        "of a processor for each")  # fmt: skip
    add("--log-tail", type=_switch, nargs="?", const=True, default=True,
        help="show the end of a failed launcher's log in status and events (on)")  # fmt: skip
    add("--network-policy-default", default=OPEN, choices=(OPEN, RESTRICTED),
        help=f"of the networks of jobs that say nothing ({OPEN})")  # fmt: skip
    add("--network-egress-default", type=egress_from_flag, default=ALL, metavar="WHOM",
        help=f"whom their pods may reach then: {', '.join(EGRESS_WORDS)}, or ranges of "
        f"addresses ({ALL})")  # fmt: skip
    add("--log-level", default="info", choices=("debug", "info", "warning", "error"))


def _listed(parts: Sequence[str]) -> tuple[str, ...]:
    """Each name once, from `a,b` as well as from an option given twice."""
    names = (name.strip() for part in parts for name in part.split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def _doubled(argument: str) -> str:
    return f"-{argument}" if re.match(r"-[A-Za-z]", argument) and argument != "-h" else argument


def _switch(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise argparse.ArgumentTypeError(f"{text!r} is neither on nor off")


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least {least}")
        return int(text)

    return number


def _port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; write 0 for none, or up to 65535")
    return int(text)


def _seconds(text: str) -> float:
    """Seconds, or as Go writes them: `15s`, `500ms`."""
    number = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m)?", text)
    if number is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; write for example 15 or 15s")
    scale = {"ms": 0.001, "s": 1.0, "m": 60.0}
    return float(number[1]) * scale[number[2] or "s"]
