"""Everything that is settled before a job runs here: which MPI, which isolation, what is missing.

Nothing is started, written or installed by preparing. `LocalRun.run_plan` is the last step before
a run: it makes the directories of claims, and refuses where the machine lacks what the job needs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from mpi_trainer.api import names
from mpi_trainer.api.defaults import mpijob_with_defaults
from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.kinds.annotations import LOCAL_MPI
from mpi_trainer.api.kinds.mpijob import OPEN_MPI, MPIJob
from mpi_trainer.api.kinds.pods import Container
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.validation import compatibility
from mpi_trainer.api.validation import mpijob as mpijob_rules
from mpi_trainer.layout.agent.choice import Choice
from mpi_trainer.layout.agent.paths import FOLDER as AGENT_FOLDER
from mpi_trainer.layout.model import Layout, PodLayout
from mpi_trainer.layout.mpijob import choose, layout
from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.execute import applied_fields, initializers, preflight
from mpi_trainer.local.execute.machine import this_machine
from mpi_trainer.local.execute.run import RunPlan
from mpi_trainer.local.execute.settings import LocalSettings
from mpi_trainer.local.jobs import trainjob
from mpi_trainer.local.mpi.distributions import DISTRIBUTIONS, Distribution, default_for, named
from mpi_trainer.local.paths import claims_dir, data_dir
from mpi_trainer.local.pods import isolation, passwd, shared_paths
from mpi_trainer.local.pods.isolation import Isolation

NAMESPACE = "default"
J = TypeVar("J", MPIJob, TrainJob)

IMAGE_NOTE = "the image is not used here: the job runs in this machine's Python environment"


class LocalRun(msgspec.Struct, frozen=True):
    """A job that is ready to run here. `notes` are what its user should know, one line each."""

    job: MPIJob
    layout: Layout
    distribution: Distribution
    isolation: Isolation
    settings: LocalSettings
    claims: Mapping[str, str]
    notes: tuple[str, ...]

    def run_plan(self) -> RunPlan:
        interface = "lo" if self.isolation.kind == "loopback" else "eth0"
        machine = this_machine(self.settings, self.distribution, interface, self.claims)
        preflight.check(self.job, self.settings.materials, self.claims)
        command = self.layout.launcher.command if self.layout.launcher else ()
        more = (str(self.distribution.prefix), str(data_dir()))
        shared = shared_paths.shared_paths(machine.cwd, machine.env, command, more)
        fetches = initializers.planned(self.settings, self.claims)
        return RunPlan(self.job, self.layout, machine, self.isolation, shared, fetches)

    def described(self) -> dict[str, Any]:
        """The layout as plain data, for `--dry-run`."""
        here = {
            "mpi": f"{self.distribution.title} {self.distribution.version}",
            "isolation": self.isolation.kind,
            "python": dict(self.settings.env)["PATH"].partition(":")[0],
            "workingDir": self.settings.cwd,
            "notes": list(self.notes),
        }
        return {**description(self.layout), "here": {k: v for k, v in here.items() if v}}


def prepare(job: MPIJob, settings: LocalSettings) -> LocalRun:
    """Defaults, validation and choices; raises InvalidJob or LocalError with everything found."""
    job = mpijob_with_defaults(_named(job))
    errors = () if settings.train else mpijob_rules.errors(job)
    if errors:
        raise InvalidJob(errors)
    chosen = named(settings.distribution) if settings.distribution else None
    if chosen and chosen.implementation != job.spec.mpi_implementation:
        spec = msgspec.structs.replace(job.spec, mpi_implementation=chosen.implementation)
        job = msgspec.structs.replace(job, spec=spec)
    preflight.check_fits(job)
    isolated = _isolation(settings.isolation)
    _demand_account(isolated)
    return LocalRun(
        job=job,
        layout=_layout(job, settings),
        distribution=_distribution(job, chosen, isolated),
        isolation=isolated,
        settings=settings,
        claims=_claims(job, settings.claims),
        notes=_notes(job, settings, isolated),
    )


def prepare_train(job: TrainJob, runtime: Runtime, settings: LocalSettings) -> LocalRun:
    """The same for a TrainJob with this runtime."""
    job = _named(job)
    errors = compatibility.errors(job, runtime)
    if errors:
        raise InvalidJob(errors)
    build = runtime.metadata.annotations.get(LOCAL_MPI)
    settings = msgspec.structs.replace(
        settings,
        distribution=settings.distribution or build,
        train=trainjob.kept(job, runtime),
    )
    return prepare(trainjob.executed_job(job, runtime), settings)


def _layout(job: MPIJob, settings: LocalSettings) -> Layout:
    if settings.train is None:
        return layout(job, chosen=_agent(job))
    return trainjob.layout(settings.train, _agent(job), job.spec.mpi_implementation or "")


def _agent(job: MPIJob) -> Choice:
    """There is no image here that could have an sshd or an entrypoint of its own."""
    asked = choose(job)
    if asked.level == "off":
        return Choice("environment", "managed", asked.why)
    return Choice("full", "managed")


def _named(job: J) -> J:
    if job.namespace:
        return job
    meta = msgspec.structs.replace(job.metadata, namespace=NAMESPACE)
    return msgspec.structs.replace(job, metadata=meta)


def _isolation(wanted: str) -> Isolation:
    found = isolation.probe()
    if wanted == "loopback":
        return msgspec.structs.replace(found, kind="loopback", reason="as asked for")
    if wanted == "namespaces" and found.kind == "loopback":
        raise LocalError(
            f"namespaces cannot be had here: {found.reason}",
            "Run as root, or leave --isolation out to share the machine's network.",
        )
    return found


def _demand_account(isolated: Isolation) -> None:
    """sshd asks the machine who the user is; only namespaces can give it an answer of our own."""
    refusal = passwd.refusal(os.getuid())
    if isolated.kind == "loopback" and refusal:
        raise LocalError(
            f"{refusal}, so this machine's sshd would not let you in, and workers without "
            f"namespaces ({isolated.reason}) are reached through it",
            "Run as another user, or where namespaces are allowed (`odh doctor`).",
        )


def _distribution(job: MPIJob, chosen: Distribution | None, isolated: Isolation) -> Distribution:
    implementation = job.spec.mpi_implementation or OPEN_MPI
    distribution = chosen or default_for(implementation)
    if isolated.kind != "loopback" or distribution.works_on_loopback:
        return distribution
    other = next(
        d for d in DISTRIBUTIONS if d.implementation == implementation and d.works_on_loopback
    )
    if chosen is None:
        return other
    raise LocalError(
        f"{chosen.title} {chosen.version} refuses to work over the loopback device, "
        f"and workers have no other here ({isolated.reason})",
        f"Use --mpi {other.name}, or run where namespaces are allowed (`odh doctor`).",
    )


def _claims(job: MPIJob, given: Mapping[str, str]) -> dict[str, str]:
    """A directory for every PersistentVolumeClaim of the job; a name is never a path to another."""
    home = claims_dir() / job.namespace
    for name in sorted(claim_names(job) - given.keys()):
        fault = names.dns1123_subdomain(name)
        if fault is not None:
            raise LocalError(
                f"claimName {name!r}: no PersistentVolumeClaim has such a name: {fault.rule}",
                f"Correct claimName in the job's volumes: {fault.remedy}.",
            )
    return {
        n: str(Path(given[n]).resolve()) if n in given else str(home / n)
        for n in sorted(claim_names(job))
    }


def claim_names(job: MPIJob) -> set[str]:
    """The PersistentVolumeClaims that the job's pods mount."""
    return {
        volume.persistent_volume_claim.claim_name
        for replica in (job.launcher, job.worker)
        for volume in replica.template.view.spec.volumes
        if volume.persistent_volume_claim is not None
    }


def _notes(job: MPIJob, settings: LocalSettings, isolated: Isolation) -> tuple[str, ...]:
    notes = []
    if isolated.kind == "loopback":
        notes.append(f"workers share this machine's network and files: {isolated.reason}")
    images = {
        c.image
        for replica in (job.launcher, job.worker)
        for c in replica.template.view.spec.containers[:1]
    }
    if images - {"local"}:
        notes.append(IMAGE_NOTE)
    left_out = trainjob.not_applied(settings.train) if settings.train else _not_applied(job)
    if left_out:
        notes.append(f"not applied locally: {', '.join(left_out)}")
    return tuple(notes)


def _not_applied(job: MPIJob) -> list[str]:
    found = [f"launcher.{p}" for p in applied_fields.not_applied(job.launcher.template, "launcher")]
    return found + [
        f"worker.{p}" for p in applied_fields.not_applied(job.worker.template, "worker")
    ]


def description(layout: Layout) -> dict[str, Any]:
    """What MPI is given, in full but for the agent's scripts. Of the job's own templates only the
    plain variables and the mounts: a value from a Secret must not be printed."""
    return {
        "name": layout.name,
        "namespace": layout.namespace,
        "implementation": layout.implementation,
        "ranks": layout.ranks,
        "slotsPerWorker": layout.slots,
        "launcher": _pod_description(layout.launcher),
        "workers": [_pod_description(worker) for worker in layout.workers],
    }


def _pod_description(pod: PodLayout) -> dict[str, Any]:
    container = next(iter(pod.template.view.spec.containers), Container())
    own = {v.name: v.value or "" for v in container.env if v.value_from is None}
    facts = {
        "name": pod.name,
        "hostname": f"{pod.hostname}.{pod.subdomain}",
        "command": list(pod.command),
        "env": {**own, **dict(pod.env)},
        "labels": dict(pod.labels),
        "mounts": {mount.mount_path: mount.name for mount in container.volume_mounts},
        "files": {f.path: f.text for f in pod.files if not f.path.startswith(f"{AGENT_FOLDER}/")},
        "keys": list(_folders(key.path for key in pod.keys)),
    }
    return {name: fact for name, fact in facts.items() if fact}


def _folders(paths: Iterable[str]) -> dict[str, None]:
    """Each folder once, in order."""
    return dict.fromkeys(path.rpartition("/")[0] for path in paths)
