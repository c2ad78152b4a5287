"""From a Layout to the pods of this machine: which program, files, variables and mounts. Pure.

The layout says what a job is anywhere; this adds what one machine needs: an own sshd in every
worker, strict keys, the chosen MPI on PATH, and MPI's settings for hosts that share their cores.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mpi_trainer.api import quantities
from mpi_trainer.api.pods import Container
from mpi_trainer.layout import agent
from mpi_trainer.layout.hosts import HOSTFILE
from mpi_trainer.layout.model import Layout, Pairs, PodLayout
from mpi_trainer.layout.mpi import Settings, implementation
from mpi_trainer.local import ranks, sshd, volumes
from mpi_trainer.local.environment import Materials, PodFacts, environment, expanded
from mpi_trainer.local.pod import File, Limits, Paths, PodPlan
from mpi_trainer.runtime.sshkeys import KeyPair

SHIMMED = ("mpiexec", "mpirun", "mpiexec.hydra", "orterun")
FOLDER = "/run/mpi-agent"
SSH = f"{FOLDER}/ssh"
AGENT = f"{FOLDER}/agent"


class Site(msgspec.Struct, frozen=True):
    """This machine, as the pods of one job shall see it.

    `env` is under every pod's own; `mpi_paths` are folders to search before all others, by the
    variable that lists them.
    """

    env: Pairs
    mpi_paths: Pairs
    cwd: str
    user: str
    sshd: str
    interface: str
    materials: Materials = Materials()
    claims: Mapping[str, str] = {}


class Place(msgspec.Struct, frozen=True):
    """Where one pod is."""

    address: str
    port: int
    paths: Paths


class Keys(msgspec.Struct, frozen=True):
    """The job's own key pair, and a host key for every worker by pod name."""

    job: KeyPair
    hosts: Mapping[str, KeyPair]


class Planner(msgspec.Struct, frozen=True):
    layout: Layout
    site: Site
    places: Mapping[str, Place]
    keys: Keys

    def pod(self, pod: PodLayout) -> PodPlan:
        """The plan of one pod; raises CannotApply for what the job needs and nobody gave."""
        spec = pod.template.view.spec
        container = spec.containers[0] if spec.containers else Container()
        place = self.places[pod.name]
        own = self._own_env(pod, container, place)
        env = self._env(pod, own, place)
        shown = volumes.shown(spec, container, self.site.materials, self.site.claims)
        worker = pod.role == "worker"
        return PodPlan(
            name=pod.name,
            hostname=pod.hostname,
            address=place.address,
            argv=self._sshd_command(place) if worker else self._command(pod, place, own),
            env=tuple(env.items()),
            cwd=container.working_dir or self.site.cwd,
            hosts=self._hosts(),
            files=(
                *(File(f.path, f.mode, f.text.encode()) for f in pod.files),
                *_agent_files(),
                *(self._server_files(pod, place, env) if worker else self._client_files(place)),
                *shown.files,
            ),
            mounts=shown.mounts,
            shm_bytes=shown.shm_bytes,
            limits=limits(container),
        )

    def _own_env(self, pod: PodLayout, container: Container, place: Place) -> dict[str, str]:
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

    def _env(self, pod: PodLayout, own: Mapping[str, str], place: Place) -> dict[str, str]:
        """The machine's variables, the job's over them, and what this MPI needs here over all."""
        site, impl = self.site, implementation(self.layout.implementation)
        at = place.paths.file
        env = {
            "HOSTNAME": pod.hostname,
            "PYTHONUNBUFFERED": "1",
            "OMP_NUM_THREADS": "1",
            **dict(site.env),
            **({"TMPDIR": place.paths.tmp} if place.paths.prefix else {}),
            **dict(impl.shared_machine_env(site.interface)),
            **own,
            "MPI_TRAINER_RANK_DIR": f"{place.paths.share}/{ranks.FOLDER}",
        }
        search = site.mpi_paths
        if pod.role == "worker":
            env["MPI_TRAINER_WORKER_RANK_DIR"] = env["MPI_TRAINER_RANK_DIR"]
        else:
            settings = Settings(
                hostfile=at(HOSTFILE), slots=self.layout.slots, ssh_args=f"-F {at(SSH)}/config"
            )
            env.update(impl.launcher_env(settings))
            env.update(impl.wrapper_env(f"{at(AGENT)}/rank"))
            env["MPI_TRAINER_TAG_OPTION"] = impl.tag_option
            search = (*search, ("PATH", f"{at(AGENT)}/bin"))
        for name, folder in search:
            env[name] = f"{folder}:{env[name]}" if env.get(name) else folder
        return env

    def _command(self, pod: PodLayout, place: Place, own: Mapping[str, str]) -> tuple[str, ...]:
        return (f"{place.paths.file(AGENT)}/launch", *(expanded(word, own) for word in pod.command))

    def _sshd_command(self, place: Place) -> tuple[str, ...]:
        return (self.site.sshd, "-D", "-e", "-f", f"{place.paths.file(SSH)}/sshd_config")

    def _hosts(self) -> str:
        lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost"]
        lines += [
            f"{self.places[p.name].address} {self._address(p)} {p.name}" for p in self.layout.pods
        ]
        return "\n".join(lines) + "\n"

    def _address(self, pod: PodLayout) -> str:
        return f"{pod.hostname}.{pod.subdomain}.{self.layout.namespace}.svc"

    def _server_files(
        self, pod: PodLayout, place: Place, env: Mapping[str, str]
    ) -> tuple[File, ...]:
        folder = place.paths.file(SSH)
        config = sshd.server_config(folder, place.address, place.port)
        variables = sshd.env_file(tuple(env.items()))
        return (
            File(f"{SSH}/sshd_config", 0o600, config.encode()),
            File(f"{SSH}/host_key", 0o600, self.keys.hosts[pod.name].private),
            File(f"{SSH}/authorized_keys", 0o600, f"{self.keys.job.public}\n".encode()),
            File(f"{SSH}/env", 0o600, variables.encode(errors="surrogateescape")),
            File(f"{SSH}/session", 0o700, sshd.session_script(f"{folder}/env").encode()),
        )

    def _client_files(self, place: Place) -> tuple[File, ...]:
        folder = place.paths.file(SSH)
        workers = [self._endpoint(p) for p in self.layout.workers]
        config = sshd.client_config(folder, self.site.user, workers)
        return (
            File(f"{SSH}/config", 0o600, config.encode()),
            File(f"{SSH}/known_hosts", 0o600, sshd.known_hosts(workers).encode()),
            File(f"{SSH}/id", 0o600, self.keys.job.private),
        )

    def _endpoint(self, pod: PodLayout) -> sshd.Endpoint:
        place = self.places[pod.name]
        return sshd.Endpoint(
            names=(pod.name, self._address(pod)),
            address=place.address,
            port=place.port,
            host_key=self.keys.hosts[pod.name].public,
        )


def _agent_files() -> tuple[File, ...]:
    shim = agent.MPIEXEC.encode()
    return (
        File(f"{AGENT}/launch", 0o755, agent.LAUNCH.encode()),
        File(f"{AGENT}/rank", 0o755, agent.RANK.encode()),
        *(File(f"{AGENT}/bin/{name}", 0o755, shim) for name in SHIMMED),
    )


def limits(container: Container) -> Limits:
    """The container's limits on CPU and memory; requests bind nobody on one machine."""
    given = container.resources.limits
    memory = given.get("memory")
    cpu = given.get("cpu")
    return Limits(
        memory_bytes=None if memory is None else int(quantities.parse(memory)),
        cpus=None if cpu is None else float(quantities.parse(cpu)),
    )
