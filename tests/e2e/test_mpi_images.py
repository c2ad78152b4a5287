"""Each MPI image runs a job over two nodes under OpenShift's rules, by hand-written manifests."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Iterator

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.cluster import Kubectl, restricted
from tests.e2e.manifests import Object, headless, pod
from tools.cluster.spec import Spec

PROGRAM = """\
import os, platform
import numpy
from mpi4py import MPI
world = MPI.COMM_WORLD
total = world.allreduce(numpy.ones(1000), op=MPI.SUM)
hosts = sorted(set(world.allgather(platform.node())))
if world.rank == 0:
    print(f"ranks={world.size} sum={total[0]:.0f} hosts={','.join(hosts)} uid={os.getuid()}")
"""
# A name is in DNS a moment after its pod runs, and not on every DNS server at once: any of them may
# be asked each time.
WHEN_KNOWN = """\
for host in worker0.workers worker1.workers; do
    until ssh "$host" 'for i in 1 2 3 4 5 6 7 8 9 10; do getent hosts launcher || exit 1; done'; do
        sleep 0.2
    done
done
exec "$@"
"""
HOSTS = ("worker0.workers", "worker1.workers")
OPENMPI: Object = {
    "hostfile": "".join(f"{host} slots=2\n" for host in HOSTS),
    "environment": {
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_mpi_yield_when_idle": "1",
    },
    "command": ["mpirun", "--hostfile", "/etc/job/hostfile", "-n", "4", "--bind-to", "none"],
}
HYDRA: Object = {
    "hostfile": "".join(f"{host}:2\n" for host in HOSTS),
    "environment": {},
    "command": ["mpiexec", "-launcher", "ssh", "-f", "/etc/job/hostfile", "-n", "4"],
}
INTEL: Object = {
    **HYDRA,
    "environment": {"I_MPI_PERHOST": "2", "FI_PROVIDER": "tcp", "I_MPI_THREAD_YIELD": "2"},
    "command": ["mpiexec", "-bootstrap", "ssh", "-f", "/etc/job/hostfile", "-n", "4"],
}
CASES = {
    "mpi-openmpi": OPENMPI,
    "mpi-openmpi5": OPENMPI,
    "mpi-mpich": HYDRA,
    "mpi-intel": INTEL,
}


def _ssh_secret() -> Object:
    key = ec.generate_private_key(ec.SECP521R1())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    data = {"id_ecdsa": private, "authorized_keys": public + b"\n"}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "ssh"},
        "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
    }


def _objects(directory: str, reference: str) -> list[Object]:
    """Two workers, and a launcher that waits for them by itself."""
    case = CASES[directory]
    volumes = [
        {"name": "ssh", "secret": {"secretName": "ssh", "defaultMode": 0o440}},
        {"name": "job", "configMap": {"name": "job"}},
    ]
    mounts = [
        {"name": "ssh", "mountPath": "/etc/mpi/ssh", "readOnly": True},
        {"name": "job", "mountPath": "/etc/job", "readOnly": True},
    ]
    ready = {"tcpSocket": {"port": 2222}, "periodSeconds": 1}
    worker = {"volumeMounts": mounts, "readinessProbe": ready}
    environment = [{"name": k, "value": v} for k, v in case["environment"].items()]
    launcher = {"volumeMounts": mounts, "env": environment}
    files = {"hostfile": case["hostfile"], "program.py": PROGRAM}
    command = ["sh", "-c", WHEN_KNOWN, "sh", *case["command"], "python3", "/etc/job/program.py"]
    return [
        _ssh_secret(),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "job"}, "data": files},
        headless("workers", {"role": "worker"}),
        # Hydra's proxies connect back to the launcher by its plain host name.
        headless("launcher", {"app": "launcher"}),
        *(
            pod(
                f"worker{i}",
                reference,
                i + 1,
                ["mpi-sshd"],
                labels={"role": "worker"},
                hostname=f"worker{i}",
                subdomain="workers",
                volumes=volumes,
                container=worker,
            )
            for i in range(2)
        ),
        pod("launcher", reference, 3, command, restartPolicy="Never", volumes=volumes,
            container=launcher),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def homes(cluster: Spec, image: Callable[[str], str]) -> Iterator[dict[str, Kubectl]]:
    """A namespace for each image, with a job in it; all at once, since a job mostly waits."""
    kubectl = Kubectl(cluster)
    made = {one: Kubectl(cluster, f"images-{secrets.token_hex(4)}") for one in CASES}
    for directory, home in made.items():
        kubectl.apply(restricted(home.namespace))
        home.apply(*_objects(directory, image(directory)))
    yield made
    for home in made.values():
        kubectl("delete", "namespace", home.namespace, "--wait=false")


@pytest.mark.timeout(600, func_only=True)
@pytest.mark.parametrize("directory", CASES)
def test_a_two_node_mpirun_as_a_random_user(homes: dict[str, Kubectl], directory: str) -> None:
    """AC-3, AC-20: sshd on port 2222 as UID 1000740000, four ranks on two nodes."""
    home = homes[directory]
    done = "--for=jsonpath={.status.containerStatuses[0].state.terminated}"
    home.wait(done, "pod/launcher", seconds=400)
    home.wait("--for=condition=Ready", "pod/worker0", "pod/worker1", seconds=60)
    log = home("logs", "launcher")
    assert "ranks=4 sum=4 hosts=worker0,worker1 uid=1000740000" in log, log
