"""From a Layout to the pods of this machine: which program, files, variables and mounts. Pure.

The layout says what a job is anywhere, the agent's scripts included; this adds what one machine
needs: keys, addresses, the chosen MPI on PATH, and MPI's settings for hosts that share their cores.
A layout without the agent is a job without MPI: its commands run as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from mpi_trainer.api import quantities
from mpi_trainer.api.kinds.pods import Container
from mpi_trainer.layout.agent import paths, scripts
from mpi_trainer.layout.hosts import DISCOVER_HOSTS, HOSTFILE
from mpi_trainer.layout.model import Layout, Pairs, Part, PodLayout
from mpi_trainer.layout.mpi import MpiSettings, implementation
from mpi_trainer.local.pods import volumes
from mpi_trainer.local.pods.environment import Materials, PodFacts, environment, expanded
from mpi_trainer.local.pods.pod import PodFile, PodLimits, PodMount, PodPaths, PodPlan
from mpi_trainer.runtime.key_pairs import KeyPair

SUMMARY = "summary"
"""the file in a launcher's share with the agent's summary"""


class Machine(msgspec.Struct, frozen=True):
    """This machine, as the pods of one job see it.

    `env` is under every pod's own; `mpi_paths` are folders to search before all others, by the
    variable that lists them, and `mpi_env` are variables that the MPI needs. `mpi` shows it in all
    pods at the path that both name, where that is not its own.
    """

    env: Pairs
    mpi_paths: Pairs
    cwd: str
    user: str
    sshd: str
    interface: str
    materials: Materials = Materials()
    claims: Mapping[str, str] = {}
    mpi_env: Pairs = ()
    mpi: PodMount | None = None


class PodLocation(msgspec.Struct, frozen=True):
    """Where one pod is."""

    address: str
    port: int
    paths: PodPaths


class JobKeys(msgspec.Struct, frozen=True):
    """The pair that opens the workers, and the pair that proves that a worker is the job's own."""

    job: KeyPair
    host: KeyPair

    def part(self, name: Part) -> bytes:
        pair = self.host if name.startswith("host-") else self.job
        return pair.private if name.endswith("private") else f"{pair.public}\n".encode()


class Planner(msgspec.Struct, frozen=True):
    layout: Layout
    machine: Machine
    locations: Mapping[str, PodLocation]
    keys: JobKeys

    def pod(self, pod: PodLayout) -> PodPlan:
        """The plan of one pod; raises CannotApply for what the job needs and is not there."""
        spec = pod.template.view.spec
        container = spec.containers[0] if spec.containers else Container()
        location = self.locations[pod.name]
        own = self._own_env(pod, container, location)
        env = self._env(pod, own, location)
        mounted = volumes.pod_volumes(spec, container, self.machine.materials, self.machine.claims)
        return PodPlan(
            name=pod.name,
            hostname=pod.hostname,
            address=location.address,
            argv=self._command(pod, location, own),
            env=tuple(env.items()),
            cwd=container.working_dir or self.machine.cwd,
            hosts=self._hosts(),
            files=(*self._files(pod, location), *mounted.files),
            mounts=(*((self.machine.mpi,) if self.machine.mpi else ()), *mounted.mounts),
            shm_bytes=mounted.shm_bytes,
            limits=limits(container),
        )

    def _own_env(
        self, pod: PodLayout, container: Container, location: PodLocation
    ) -> dict[str, str]:
        """What the job itself says: the template's variables, and the layout's over them."""
        meta = pod.template.view.metadata
        facts = PodFacts(
            name=pod.name,
            namespace=self.layout.namespace,
            address=location.address,
            node=pod.name,
            labels={**meta.labels, **pod.labels},
            annotations=meta.annotations,
        )
        return {**environment(container, (), facts, self.machine.materials), **dict(pod.env)}

    def _env(self, pod: PodLayout, own: Mapping[str, str], location: PodLocation) -> dict[str, str]:
        """The machine's variables, the job's over them, and what this MPI needs here over all."""
        machine, impl = self.machine, implementation(self.layout.implementation)
        at = location.paths.file
        env = {
            "HOSTNAME": pod.hostname,
            "PYTHONUNBUFFERED": "1",
            "OMP_NUM_THREADS": "1",
            **dict(machine.env),
            **{name: self._of_mpi(value, location) for name, value in machine.mpi_env},
            **({"TMPDIR": location.paths.tmp} if location.paths.prefix else {}),
            **dict(impl.shared_machine_env(machine.interface)),
            **own,
            "MPI_TRAINER_SCRATCH": location.paths.share,
            "MPI_TRAINER_KEYS": at(paths.KEYS),
        }
        if self.layout.agent == "off":
            return env
        if pod.role == "worker":
            env["MPI_TRAINER_SSHD"] = machine.sshd
            env["MPI_TRAINER_SSH_ADDRESS"] = location.address
            env["MPI_TRAINER_SSH_PORT"] = str(location.port)
        else:
            env.update(self._launcher_env(location))
        for name, given in machine.mpi_paths:
            folder = self._of_mpi(given, location)
            env[name] = f"{folder}:{env[name]}" if env.get(name) else folder
        return env

    def _of_mpi(self, text: str, location: PodLocation) -> str:
        """A value that names the path of the MPI, as this pod sees it."""
        mounted = self.machine.mpi
        return (
            text
            if mounted is None
            else text.replace(mounted.target, location.paths.common + mounted.target)
        )

    def _launcher_env(self, location: PodLocation) -> dict[str, str]:
        """The layout's own variables with the paths of this pod, and marks on ranks' lines."""
        impl, at = implementation(self.layout.implementation), location.paths.file
        config = f"{location.paths.share}/ssh/config"
        names = (self.layout.launcher.name, *(host.address for host in self.layout.hosts))
        given = MpiSettings(at(HOSTFILE), self.layout.slots, f"-F {config}", names)
        full = self.layout.agent == "full"
        return {
            **dict(impl.launcher_env(given)),
            **(dict(impl.wrapper_env(at(paths.RANK))) if full else {}),
            "MPI_TRAINER_SSH_USER": self.machine.user,
            "MPI_TRAINER_TERMINATION": f"{location.paths.share}/{SUMMARY}",
            "MPI_TRAINER_TAG_OPTION": impl.tag_option,
        }

    def _command(
        self, pod: PodLayout, location: PodLocation, own: Mapping[str, str]
    ) -> tuple[str, ...]:
        """Where the agent does not run the launcher's command, it still has to prepare for it."""
        at = location.paths.file
        words = tuple(expanded(word, own) for word in pod.command)
        if self.layout.agent == "off":
            return words
        if pod.role == "worker":
            return (at(paths.WORKER),)
        if self.layout.agent == "full":
            return (at(paths.LAUNCH), *words[1:])
        return ("/bin/sh", "-c", '"$0" launcher && exec "$@"', at(paths.PREPARE), *words)

    def _hosts(self) -> str:
        lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost"]
        lines += [
            f"{self.locations[p.name].address} {' '.join(self._names(p))}" for p in self.layout.pods
        ]
        return "\n".join(lines) + "\n"

    def _names(self, pod: PodLayout) -> tuple[str, ...]:
        short = f"{pod.hostname}.{pod.subdomain}"
        return (f"{short}.{self.layout.namespace}.svc", short, pod.name)

    def _files(self, pod: PodLayout, location: PodLocation) -> Iterator[PodFile]:
        for file in pod.files:
            text = self._workers() if file.path == scripts.HOSTS else file.text
            if file.path == DISCOVER_HOSTS:
                text = text.replace(paths.ALIVE, f"{location.paths.share}/alive")
            yield PodFile(file.path, file.mode, text.encode())
        for key in pod.keys:
            if key.path.startswith(f"{paths.KEYS}/"):
                yield PodFile(key.path, 0o600, self.keys.part(key.part))

    def _workers(self) -> str:
        """Every worker with its address and port, which need no resolver."""
        workers = (h for h in self.layout.hosts if h.pod != self.layout.launcher.name)
        locations = ((host, self.locations[host.pod]) for host in workers)
        return "".join(
            f"{h.pod} {h.address} {location.address} {location.port}\n" for h, location in locations
        )


def limits(container: Container) -> PodLimits:
    """The container's limits on CPU and memory; requests bind nobody on one machine."""
    given = container.resources.limits
    memory = given.get("memory")
    cpu = given.get("cpu")
    return PodLimits(
        memory_bytes=None if memory is None else int(quantities.parse(memory)),
        cpus=None if cpu is None else float(quantities.parse(cpu)),
    )
