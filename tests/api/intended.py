"""How our objects differ from upstream's on purpose, as data: what, why, and exactly where.

`tests/api/full/test_same_as_upstream.py` holds both operators to this list, and `page` makes
docs/compatibility.md from it:

    python -m tests.api.intended
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.api.comparison import ABSENT, Unlike

ANY: Final = "(any)"
PAGE: Final = Path(__file__).parents[2] / "docs/compatibility.md"


class Place(msgspec.Struct, frozen=True):
    """`path` may hold `*`; `theirs` and `ours` are what stands there, or ABSENT, or ANY."""

    kind: str
    path: str
    theirs: Any
    ours: Any

    def fits(self, seen: Unlike) -> bool:
        parts = (re.escape(part) for part in self.path.split("*"))
        return (
            self.kind in (seen.kind, "*")
            and re.fullmatch(".*".join(parts), seen.path, re.DOTALL) is not None
            and self.theirs in (seen.theirs, ANY)
            and self.ours in (seen.ours, ANY)
        )


class Intended(msgspec.Struct, frozen=True):
    """`agent`: the difference goes away with the annotation that turns the agent off."""

    what: str
    why: str
    places: tuple[Place, ...]
    agent: bool = False


def pods(path: str, theirs: Any, ours: Any) -> tuple[Place, ...]:
    return Place("Worker", path, theirs, ours), Place("Launcher", path, theirs, ours)


def added(kind: str, *paths: str) -> tuple[Place, ...]:
    return tuple(Place(kind, path, ABSENT, ANY) for path in paths)


def variables(*names: str) -> tuple[Place, ...]:
    return added("Launcher", *(f"spec.containers[*].env[{name}]" for name in names))


TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
DOMAIN: Final = "mpi-trainer.opendatahub.io"

ALWAYS: Final = (
    Intended(
        "The Service publishes pods before they are ready.",
        "MPI's daemons connect back to a launcher that is ready only when they have; upstream"
        " does so only with `runLauncherAsWorker`.",
        (Place("Service", "spec.publishNotReadyAddresses", ABSENT, True),),
    ),
    Intended(
        "Pods and the launcher's Job say which attempt they belong to.",
        "Attempts are counted for the job as a whole and recorded before anything is started.",
        (
            *pods(f"metadata.annotations.{DOMAIN}/attempt", ABSENT, "1"),
            Place("Job", f"metadata.annotations.{DOMAIN}/attempt", ABSENT, "1"),
        ),
    ),
    Intended(
        "Pods are never restarted in place, and the launcher's Job has one try.",
        "A restart by the kubelet would hide a failure, and Job and MPIJob would each count their"
        " own. `restartPolicy` and `backoffLimit` hold for the MPIJob's attempts.",
        (
            *pods("spec.restartPolicy", "OnFailure", "Never"),
            Place("Job", "spec.backoffLimit", ANY, 0),
        ),
    ),
    Intended(
        "Deadline and time to live are not on the launcher's Job.",
        "They hold for the MPIJob: the deadline counts from its start, and the whole job goes when"
        " its time is over, not its launcher alone.",
        (
            Place("Job", "spec.activeDeadlineSeconds", ANY, ABSENT),
            Place("Job", "spec.ttlSecondsAfterFinished", ANY, ABSENT),
        ),
    ),
    Intended(
        "The launcher's pod has a finalizer.",
        "Its exit code and last words stay readable until they are in the job's status.",
        (Place("Launcher", "metadata.finalizers", ABSENT, [f"{DOMAIN}/evidence"]),),
    ),
    Intended(
        "The launcher's Job carries the labels that its pod has upstream.",
        "So that it can be watched by label, and no other Job of the cluster need be read.",
        (
            Place("Job", "metadata.labels.training.kubeflow.org/operator-name", ABSENT, ANY),
            Place("Job", "metadata.labels.training.kubeflow.org/job-name", ABSENT, ANY),
        ),
    ),
    Intended(
        "Pods say their role by a second label, `training.kubeflow.org/replica-type`.",
        "Kubeflow's other jobs have it: one selector then finds the workers of jobs of every kind.",
        pods("metadata.labels.training.kubeflow.org/replica-type", ABSENT, ANY),
    ),
    Intended(
        "The launcher's pod template has no owner reference.",
        "The Job controller ignores it; the pod belongs to the Job.",
        (Place("Launcher", "metadata.ownerReferences", ANY, ABSENT),),
    ),
    Intended(
        "The Secret cannot be changed, only deleted.",
        "It never is; and kubelets need not watch it, nor miss it in pods that outlive the job.",
        (Place("Secret", "immutable", ABSENT, True),),
    ),
    Intended(
        "The launcher, too, searches the job's DNS domain.",
        "Short names of workers resolve there as they do in workers; and the domain is the"
        " cluster's own where it is not `cluster.local`.",
        added("Launcher", "spec.dnsConfig.searches"),
    ),
    Intended(
        "Istio's sidecar is off, unless the template says something about it.",
        "A sidecar breaks MPI's own connections and keeps a finished launcher alive.",
        pods("metadata.annotations.sidecar.istio.io/inject", ABSENT, "false"),
    ),
    Intended(
        "Pods get no API token, unless the template asks for one or names an account.",
        "Training code has no business with the API server.",
        (
            *pods("spec.automountServiceAccountToken", ABSENT, False),
            Place("Worker", "spec.volumes[kube-api-access]", ANY, ABSENT),
            Place("Worker", f"spec.containers[*].volumeMounts[{TOKEN}]", ANY, ABSENT),
            Place("Worker", f"spec.initContainers[*].volumeMounts[{TOKEN}]", ANY, ABSENT),
        ),
    ),
    Intended(
        "`/dev/shm` is as large as the pod's memory where ranks run, unless the template mounts"
        " one or uses the host's IPC.",
        "Runtimes give 64 MiB, on which MPI and NCCL fail.",
        (
            *added("Worker", "spec.volumes[dev-shm*]", "spec.containers[*].volumeMounts[/dev/shm]"),
            *added("Worker", "spec.initContainers[*].volumeMounts[/dev/shm]"),
            *added("Launcher", "spec.volumes[dev-shm]"),
            *added("Launcher", "spec.containers[*].volumeMounts[/dev/shm]"),
        ),
    ),
    Intended(
        "Open MPI 5's variables stand beside Open MPI 4's.",
        "Open MPI 5 reads no other; without them every rank runs in the launcher.",
        variables(
            "PRTE_MCA_prte_keep_fqdn_hostnames",
            "PRTE_MCA_prte_default_hostfile",
            "PRTE_MCA_prte_set_default_slots",
            "PRTE_MCA_plm_ssh_args",
        ),
    ),
    Intended(
        "MPICH's retry variable is also there under the name that MPICH reads.",
        "Upstream's `HYDRA_LAUNCH_EXTRA_ARGS` has had no effect since 2011.",
        variables("HYDRA_LAUNCHER_EXTRA_ARGS"),
    ),
    Intended(
        "`discover_hosts.sh` lists the hosts that answer, or all.",
        "The ConfigMap changes when `replicas` does, not with every worker that comes and goes: the"
        " script asks the agent, which knows sooner than a mounted ConfigMap would.",
        (Place("ConfigMap", "data.discover_hosts.sh", ANY, ANY),),
    ),
)
AGENT: Final = (
    Intended(
        "Pods mount the agent's scripts, which all jobs of a namespace share, with their own"
        " settings and the keys they use.",
        "They run sshd for any user, wait for workers, watch ranks and say what failed.",
        (
            *added("ConfigMap", "data.*"),
            *added("Job", f"metadata.annotations.{DOMAIN}/agent-scripts"),
            *added("Worker", "spec.volumes[etc-mpi-agent]", "spec.volumes[run-mpi-agent]"),
            *added("Launcher", "spec.volumes[etc-mpi-agent]", "spec.volumes[run-mpi-agent]"),
            *pods("spec.containers[*].volumeMounts[/etc/mpi-agent]", ABSENT, ANY),
            *pods("spec.containers[*].volumeMounts[/run/mpi-agent]", ABSENT, ANY),
        ),
        agent=True,
    ),
    Intended(
        "An init container of the pod's own image and rights prepares what sshd needs, and shows"
        " it as `/etc/passwd`.",
        "ssh refuses a user that has no account, which a random user id never has.",
        (
            *pods("spec.initContainers[mpi-prepare]", ABSENT, ANY),
            *pods("spec.containers[*].volumeMounts[/etc/passwd]", ABSENT, ANY),
        ),
        agent=True,
    ),
    Intended(
        "Workers that name no command run the agent's sshd on port 2222, and are ready from its"
        " first answer on.",
        "Upstream's needs root, and nothing tells when it answers.",
        (
            Place(
                "Worker",
                "spec.containers[*].command",
                ["/usr/sbin/sshd", "-De"],
                ["/etc/mpi-agent/worker"],
            ),
            *added("Worker", "spec.containers[*].startupProbe"),
        ),
        agent=True,
    ),
    Intended(
        "The launcher's command runs as the agent's child, word for word; where the agent does not"
        " run it, it starts when DNS knows all hosts.",
        "So its ranks are counted and a dead or hung one ends the job; and an mpirun that is too"
        " early fails.",
        (
            Place("Launcher", "spec.containers[*].command", ANY, ANY),
            Place("Launcher", "spec.containers[*].args", ANY, ABSENT),
            *variables(
                "OMPI_MCA_plm_rsh_no_tree_spawn",
                "PRTE_MCA_plm_ssh_no_tree_spawn",
                "I_MPI_HYDRA_BRANCH_COUNT",
                "OMPI_MCA_orte_fork_agent",
                "PRTE_MCA_odls_base_exec_agent",
                "I_MPI_GTOOL",
            ),
            *(
                Place(
                    "Launcher",
                    f"spec.containers[*].env[{name}].value",
                    "-o ConnectionAttempts=10",
                    "-o ConnectionAttempts=10 -F /run/mpi-agent/ssh/config",
                )
                for name in ("OMPI_MCA_plm_rsh_args", "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS")
            ),
        ),
        agent=True,
    ),
    Intended(
        "The launcher has a readiness probe, and is not ready while its ranks seem to be stuck.",
        "So the controller learns of it without asking; a job is marked for it, and never ended.",
        (*added("Launcher", "spec.containers[*].readinessProbe"),),
        agent=True,
    ),
    Intended(
        "Workers get the public key and a host key of their own, not the private key.",
        "Who takes over a worker cannot log in to the others, and the launcher knows whom it"
        " talks to. Images that are made for upstream's keys get them: see `compatible`.",
        (
            *added("Secret", "data.ssh-host-privatekey", "data.ssh-host-publickey"),
            Place("Worker", "spec.containers[*].volumeMounts[/root/.ssh]", ANY, ABSENT),
            Place("Worker", "spec.volumes[ssh-auth]", ANY, ABSENT),
        ),
        agent=True,
    ),
)
INTENDED: Final = (*ALWAYS, *AGENT)

_HEAD = """# Compatibility with kubeflow/mpi-operator

Every MPIJob that runs on mpi-operator 0.8 runs here, with the same children under the same names
and labels. For the jobs in `tests/golden/render`, `tests/api/full/test_same_as_upstream.py` runs
the real mpi-operator and compares what both make, field by field. They differ as this page says
and in no other way.

<!-- Made by `python -m tests.api.intended` from the list that the test uses. -->
"""
_AGENT = f"""## With the agent

The agent is in jobs whose workers name no command. The annotation `{DOMAIN}/ssh: compatible` on
the MPIJob gives the pods upstream's keys and worker command, and `{DOMAIN}/agent: off`
leaves all of this section out, but that the launcher's command waits for names (`names`); with
`{DOMAIN}/wait-seconds: "0"` beside it, that too.
"""


def page() -> str:
    return "\n".join((_HEAD, "## Always\n", table(ALWAYS), _AGENT, table(AGENT))).rstrip() + "\n"


def table(listed: tuple[Intended, ...]) -> str:
    rows = (f"| {one.what} | {one.why} | {_where(one)} |" for one in listed)
    return "\n".join(("| difference | why | where |", "|---|---|---|", *rows, ""))


def _where(one: Intended) -> str:
    return "<br>".join(f"{place.kind} `{place.path}`" for place in one.places)


if __name__ == "__main__":
    PAGE.write_text(page())
