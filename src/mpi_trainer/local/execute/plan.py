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
"""the file in a launcher's share with the agent's last words"""


class Machine(msgspec.Struct, frozen=True):
    """This machine, as the pods of one job shall see it.

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
    site: Machine
    places: Mapping[str, PodLocation]
    keys: JobKeys

    def pod(self, pod: PodLayout) -> PodPlan:
        """The plan of one pod; raises CannotApply for what the job needs and nobody gave."""
        spec = pod.template.view.spec
        container = spec.containers[0] if spec.containers else Container()
        place = self.places[pod.name]
        own = self._own_env(pod, container, place)
        env = self._env(pod, own, place)
        shown = volumes.pod_volumes(spec, container, self.site.materials, self.site.claims)
        return PodPlan(
            name=pod.name,
            hostname=pod.hostname,
            address=place.address,
            argv=self._command(pod, place, own),
            env=tuple(env.items()),
            cwd=container.working_dir or self.site.cwd,
            hosts=self._hosts(),
            files=(*self._files(pod, place), *shown.files),
            mounts=(*((self.site.mpi,) if self.site.mpi else ()), *shown.mounts),
            shm_bytes=shown.shm_bytes,
            limits=limits(container),
        )

    def _own_env(self, pod: PodLayout, container: Container, place: PodLocation) -> dict[str, str]:
        """What the job itself says: the template's variables, and the layout's over them."""
        meta = pod.template.view.metadata
        facts = PodFacts(
            name=pod.name,
            namespace=self.layout.namespace,
            address=place.address,
            node=pod.name,
            labels={**meta.labels, **pod.labels},
            annotations=meta.annotations,
        )
        return {**environment(container, (), facts, self.site.materials), **dict(pod.env)}

    def _env(self, pod: PodLayout, own: Mapping[str, str], place: PodLocation) -> dict[str, str]:
        """The machine's variables, the job's over them, and what this MPI needs here over all."""
        site, impl = self.site, implementation(self.layout.implementation)
        at = place.paths.file
        env = {
            "HOSTNAME": pod.hostname,
            "PYTHONUNBUFFERED": "1",
            "OMP_NUM_THREADS": "1",
            **dict(site.env),
            **{name: self._of_mpi(value, place) for name, value in site.mpi_env},
            **({"TMPDIR": place.paths.tmp} if place.paths.prefix else {}),
            **dict(impl.shared_machine_env(site.interface)),
            **own,
            "MPI_TRAINER_SCRATCH": place.paths.share,
            "MPI_TRAINER_KEYS": at(paths.KEYS),
        }
        if self.layout.agent == "off":
            return env
        if pod.role == "worker":
            env["MPI_TRAINER_SSHD"] = site.sshd
            env["MPI_TRAINER_SSH_ADDRESS"] = place.address
            env["MPI_TRAINER_SSH_PORT"] = str(place.port)
        else:
            env.update(self._launcher_env(place))
        for name, given in site.mpi_paths:
            folder = self._of_mpi(given, place)
            env[name] = f"{folder}:{env[name]}" if env.get(name) else folder
        return env

    def _of_mpi(self, text: str, place: PodLocation) -> str:
        """A value that names the path of the MPI, as this pod sees it."""
        shown = self.site.mpi
        return (
            text if shown is None else text.replace(shown.target, place.paths.common + shown.target)
        )

    def _launcher_env(self, place: PodLocation) -> dict[str, str]:
        """The layout's own variables with the paths of this pod, and marks on ranks' lines."""
        impl, at = implementation(self.layout.implementation), place.paths.file
        config = f"{place.paths.share}/ssh/config"
        names = (self.layout.launcher.name, *(host.address for host in self.layout.hosts))
        given = MpiSettings(at(HOSTFILE), self.layout.slots, f"-F {config}", names)
        full = self.layout.agent == "full"
        return {
            **dict(impl.launcher_env(given)),
            **(dict(impl.wrapper_env(at(paths.RANK))) if full else {}),
            "MPI_TRAINER_SSH_USER": self.site.user,
            "MPI_TRAINER_TERMINATION": f"{place.paths.share}/{SUMMARY}",
            "MPI_TRAINER_TAG_OPTION": impl.tag_option,
        }

    def _command(
        self, pod: PodLayout, place: PodLocation, own: Mapping[str, str]
    ) -> tuple[str, ...]:
        """Where the agent does not run the launcher's command, it still has to prepare for it."""
        at = place.paths.file
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
            f"{self.places[p.name].address} {' '.join(self._names(p))}" for p in self.layout.pods
        ]
        return "\n".join(lines) + "\n"

    def _names(self, pod: PodLayout) -> tuple[str, ...]:
        short = f"{pod.hostname}.{pod.subdomain}"
        return (f"{short}.{self.layout.namespace}.svc", short, pod.name)

    def _files(self, pod: PodLayout, place: PodLocation) -> Iterator[PodFile]:
        for file in pod.files:
            text = self._workers() if file.path == scripts.HOSTS else file.text
            if file.path == DISCOVER_HOSTS:
                text = text.replace(paths.ALIVE, f"{place.paths.share}/alive")
            yield PodFile(file.path, file.mode, text.encode())
        for key in pod.keys:
            if key.path.startswith(f"{paths.KEYS}/"):
                yield PodFile(key.path, 0o600, self.keys.part(key.part))

    def _workers(self) -> str:
        """Every worker with its address and port, which need no resolver."""
        workers = (h for h in self.layout.hosts if h.pod != self.layout.launcher.name)
        places = ((host, self.places[host.pod]) for host in workers)
        return "".join(f"{h.pod} {h.address} {place.address} {place.port}\n" for h, place in places)


def limits(container: Container) -> PodLimits:
    """The container's limits on CPU and memory; requests bind nobody on one machine."""
    given = container.resources.limits
    memory = given.get("memory")
    cpu = given.get("cpu")
    return PodLimits(
        memory_bytes=None if memory is None else int(quantities.parse(memory)),
        cpus=None if cpu is None else float(quantities.parse(cpu)),
    )
