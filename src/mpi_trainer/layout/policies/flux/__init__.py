"""Flux starts the ranks of a TrainJob: one broker per node, the job's command on the first.

Names, paths and settings are upstream's; the scripts are our own. The command reaches Flux word for
word, where upstream joins the words and lets the shell part them again; one word alone is parted at
blanks, as there. Danger: texts of users stand in the broker's configuration as quoted strings only,
and in no script.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from mpi_trainer.api.effective.combine import NODE, Effective, ReplicatedJob, gpus
from mpi_trainer.api.effective.overrides import NODE_CONTAINER, container
from mpi_trainer.api.validation.compatibility import FLUX_INSTALLER
from mpi_trainer.layout import package_files
from mpi_trainer.layout.hosts import host_name

CONFIG_FOLDER: Final = "/etc/flux-config"
INSTALLER: Final = FLUX_INSTALLER
INIT: Final = ("/bin/bash", f"{CONFIG_FOLDER}/init.sh")
ENTRYPOINT: Final = ("/bin/bash", f"{CONFIG_FOLDER}/entrypoint.sh")

VIEW_IMAGE: Final = "FLUX_VIEW_IMAGE"
NETWORK_DEVICE: Final = "FLUX_NETWORK_DEVICE"
QUEUE_POLICY: Final = "FLUX_QUEUE_POLICY"
_DEFAULTS: Final = {
    VIEW_IMAGE: "ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy",
    NETWORK_DEVICE: "eth0",
    QUEUE_POLICY: "fcfs",
}
_CONFIG: Final = "/mnt/flux/config"
_SCRIPTS: Final = ("init.sh", "entrypoint.sh")


class Broker(msgspec.Struct, frozen=True):
    """What the nodes of one job get. `files` are by name in CONFIG_FOLDER."""

    image: str
    command: tuple[str, ...]
    files: Mapping[str, str]


def nodes(effective: Effective) -> ReplicatedJob | None:
    """The replicated job whose pods are brokers."""
    return next((one for one in effective.jobs if one.name == NODE), None)


def broker(effective: Effective, namespace: str, domain: str) -> Broker:
    chosen = _settings(effective)
    return Broker(
        image=chosen[VIEW_IMAGE],
        command=(*ENTRYPOINT, *_words(effective)),
        files={
            **{name: package_files.text(f"policies/flux/{name}") for name in _SCRIPTS},
            "broker.toml": _configuration(effective, namespace, domain, chosen),
            "settings": _numbers(effective),
        },
    )


def _settings(effective: Effective) -> dict[str, str]:
    """Of the node's variables those that are for Flux."""
    given = {v.get("name"): v.get("value") for v in _main(effective).get("env") or ()}
    return {name: given.get(name) or usual for name, usual in _DEFAULTS.items()}


def _words(effective: Effective) -> list[str]:
    main = _main(effective)
    words = [*(main.get("command") or ()), *(main.get("args") or ())]
    return words[0].split() if len(words) == 1 else words


def _main(effective: Effective) -> Mapping[str, Any]:
    job = nodes(effective)
    return {} if job is None else container(job.template.content, NODE_CONTAINER)


def _hosts(effective: Effective) -> str:
    return f"{effective.name}-{NODE}-0-[{_range(effective.nodes)}]"


def _range(size: int) -> str:
    return "0" if size == 1 else f"0-{size - 1}"


def _numbers(effective: Effective) -> str:
    """What the entry point reads: assignments of numbers and host names."""
    tasks, accelerators = effective.slots, gpus(effective.jobs)
    resources = f"--cores={_range(tasks)}"
    flags = f"-N {effective.nodes} -n {effective.nodes * tasks}"
    if accelerators:
        resources += f" --gpus={_range(accelerators)}"
    if accelerators >= tasks:
        flags += f" -g {accelerators // tasks}"
    return (
        f"first={host_name(effective.name, NODE)}\n"
        f"hosts='{_hosts(effective)}'\n"
        f"resources='{resources}'\n"
        f"flags='{flags}'\n"
    )


def _configuration(
    effective: Effective, namespace: str, domain: str, chosen: Mapping[str, str]
) -> str:
    """broker.toml."""
    suffix = f"{effective.subdomain}.{namespace}.svc" + (f".{domain}" if domain else "")
    return f"""[access]
allow-guest-user = true
allow-root-owner = true

[resource]
path = "{_CONFIG}/etc/flux/system/R"

[bootstrap]
curve_cert = "{_CONFIG}/etc/curve/curve.cert"
default_port = 8050
default_bind = {_quoted(f"tcp://{chosen[NETWORK_DEVICE]}:%p")}
default_connect = {_quoted(f"tcp://%h.{suffix}:%p")}
hosts = [{{ host = {_quoted(_hosts(effective))} }}]

[archive]
dbpath = "{_CONFIG}/var/lib/flux/job-archive.sqlite"
period = "1m"
busytimeout = "50s"

[sched-fluxion-qmanager]
queue-policy = {_quoted(chosen[QUEUE_POLICY])}
"""


def _quoted(text: str) -> str:
    """A JSON string, which is one of TOML too."""
    return json.dumps(text, ensure_ascii=False)
