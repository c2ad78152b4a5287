"""How a TrainJob's objects differ from upstream's on purpose, as data: what, why, exactly where.

`tests/api/full/test_same_as_trainer.py` holds both controllers to this list, and `page` makes
docs/compatibility-trainjob.md from it:

    python -m tests.api.intended_trainjob
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tests.api.comparison import ABSENT
from tests.api.intended import ANY, DOMAIN, Intended, Place, table

PAGE: Final = Path(__file__).parents[2] / "docs/compatibility-trainjob.md"
POD: Final = "spec.replicatedJobs[*].template.spec.template"
MAIN: Final = f"{POD}.spec.containers[node]"
KEYS: Final = f"{POD}.spec.volumes[mpi-ssh-auth].secret"


def pods(path: str, theirs: Any = ABSENT, ours: Any = ANY) -> Place:
    return Place("JobSet", f"{POD}.{path}", theirs, ours)


def main(path: str, theirs: Any = ABSENT, ours: Any = ANY) -> Place:
    return Place("JobSet", f"{MAIN}.{path}", theirs, ours)


def variables(*names: str) -> tuple[Place, ...]:
    return tuple(main(f"env[{name}]") for name in names)


ALWAYS: Final = (
    Intended(
        "Pods carry a label with the job's name.",
        "So that they can be watched by it, and no other pod of the cluster need be read.",
        (pods(f"metadata.labels.{DOMAIN}/trainjob"),),
    ),
    Intended(
        "Pods that train and fail are replaced, not restarted in place, unless the runtime says"
        " otherwise.",
        "The log and the exit code of each try stay; in place, the last one's would go with its"
        " pod.",
        (pods("spec.restartPolicy", ABSENT, "Never"),),
    ),
    Intended(
        "The JobSet says what it was rendered from.",
        "A job that comes back from suspension as another one gets another JobSet, where upstream's"
        " would be refused by JobSet for ever.",
        (Place("JobSet", f"metadata.annotations.{DOMAIN}/rendered", ABSENT, ANY),),
    ),
    Intended(
        "The snapshot of a job's runtime cannot be changed.",
        "A job keeps the runtime that it began with, whoever may write ConfigMaps.",
        (Place("ConfigMap", "immutable", ABSENT, True),),
    ),
)
MPI: Final = (
    Intended(
        "Istio's sidecar is off, and pods get no API token, unless the runtime says something"
        " about it.",
        "A sidecar breaks MPI's own connections; training code has no business with the API.",
        (
            pods("metadata.annotations.sidecar.istio.io/inject", ABSENT, "false"),
            pods("spec.automountServiceAccountToken", ABSENT, False),
        ),
    ),
    Intended(
        "`/dev/shm` is as large as the pod's memory where ranks run.",
        "Runtimes give 64 MiB, on which MPI and NCCL fail.",
        (pods("spec.volumes[dev-shm]"), main("volumeMounts[/dev/shm]")),
    ),
    Intended(
        "Pods search the job's DNS domain.",
        "Hydra's workers look for the launcher by its short name.",
        (pods("spec.dnsConfig.searches"),),
    ),
    Intended(
        "The job's image reaches the nodes too.",
        "Ranks of one program in two images are no use to anybody.",
        (main("image", "example.org/mpi:1", "example.org/own:2"),),
    ),
    Intended(
        "Open MPI 5's variables stand beside Open MPI 4's, and pods know their role.",
        "Open MPI 5 reads no other; without them every rank runs in the launcher.",
        variables(
            "PRTE_MCA_prte_keep_fqdn_hostnames",
            "PRTE_MCA_prte_default_hostfile",
            "PRTE_MCA_prte_set_default_slots",
            "PRTE_MCA_plm_ssh_args",
            "K_MPI_JOB_ROLE",
        ),
    ),
    Intended(
        "Key files can be read by any user, and by root's ssh.",
        "Upstream's modes suit one user in one group: root's ssh refuses them, and a user id that"
        " the cluster chose cannot read them.",
        (
            Place("JobSet", f"{KEYS}.defaultMode", 0o400, ANY),
            *(
                Place("JobSet", f"{KEYS}.items[{name}].mode", ANY, ABSENT)
                for name in ("id_rsa", "id_rsa.pub", "authorized_keys")
            ),
        ),
    ),
)
AGENT: Final = (
    Intended(
        "Pods mount the agent's scripts, which all jobs of a namespace share, with their own"
        " settings and the keys they use.",
        "They run sshd for any user, wait for nodes, watch ranks and say what failed.",
        (
            Place("ConfigMap", "data.*", ABSENT, ANY),
            Place("JobSet", f"metadata.annotations.{DOMAIN}/agent-scripts", ABSENT, ANY),
            pods("spec.volumes[etc-mpi-agent]"),
            pods("spec.volumes[run-mpi-agent]"),
            main("volumeMounts[/etc/mpi-agent]"),
            main("volumeMounts[/run/mpi-agent]"),
        ),
        agent=True,
    ),
    Intended(
        "An init container of the pod's own image and rights prepares what sshd needs, and shows"
        " it as `/etc/passwd`.",
        "ssh refuses a user that has no account, which a random user id never has.",
        (pods("spec.initContainers[mpi-prepare]"), main("volumeMounts[/etc/passwd]")),
        agent=True,
    ),
    Intended(
        "Nodes that name no command run the agent's sshd on port 2222, and are ready from its"
        " first answer on.",
        "Upstream has no sshd for them: a runtime has to bring one, and with it one user.",
        (
            main("command", ABSENT, ["/etc/mpi-agent/worker"]),
            main("startupProbe"),
        ),
        agent=True,
    ),
    Intended(
        "The launcher's command runs as the agent's child, word for word; where the agent does not"
        " run it, it starts when DNS knows all hosts.",
        "So its ranks are counted and a dead or hung one ends the job; and an mpirun that is too"
        " early fails.",
        (
            main("command", ANY, ANY),
            main("args", ANY, ABSENT),
            *variables(
                "OMPI_MCA_plm_rsh_no_tree_spawn",
                "PRTE_MCA_plm_ssh_no_tree_spawn",
                "OMPI_MCA_orte_fork_agent",
                "PRTE_MCA_odls_base_exec_agent",
            ),
            main(
                "env[OMPI_MCA_plm_rsh_args].value",
                "-o ConnectionAttempts=10",
                "-o ConnectionAttempts=10 -F /run/mpi-agent/ssh/config",
            ),
        ),
        agent=True,
    ),
    Intended(
        "Nodes get the public key and a host key of their own, not the private key.",
        "Who takes over a node cannot log in to the others, and the launcher knows whom it talks"
        " to.",
        (
            Place("Secret", "data.ssh-host-privatekey", ABSENT, ANY),
            Place("Secret", "data.ssh-host-publickey", ABSENT, ANY),
            main("volumeMounts[/home/mpiuser/.ssh]", ANY, ABSENT),
            main("volumeMounts[/root/.ssh]", ANY, ABSENT),
            pods("spec.volumes[mpi-ssh-auth]", ANY, ABSENT),
        ),
        agent=True,
    ),
)
FLUX: Final = (
    Intended(
        "The scripts that start Flux are our own, and read their settings from files beside them.",
        "No text of a user stands in a script.",
        (
            Place("ConfigMap", "data.entrypoint.sh", ANY, ANY),
            Place("ConfigMap", "data.init.sh", ANY, ANY),
            Place("ConfigMap", "data.broker.toml", ABSENT, ANY),
            Place("ConfigMap", "data.settings", ABSENT, ANY),
        ),
    ),
    Intended(
        "The command reaches Flux word for word; one that is a single word is parted at blanks.",
        "Upstream joins the words and parts them again at every blank: `sh -c 'a b'` becomes"
        " `sh -c a b`.",
        (main("command", ANY, ANY),),
    ),
    Intended(
        "`/dev/shm` can be written.",
        "Ranks of a node exchange their data there.",
        (main("volumeMounts[/dev/shm].readOnly", True, ABSENT),),
    ),
    Intended(
        "The key is made by chance and can be read by any user of the pod.",
        "Upstream's follows from the job's uid, which whoever sees the job knows, and is root's.",
        (pods("spec.volumes[flux-curve].secret.defaultMode", 0o400, 0o444),),
    ),
)
INTENDED: Final = (*ALWAYS, *MPI, *AGENT, *FLUX)

_HEAD = """# Compatibility with kubeflow/trainer

A TrainJob that runs on trainer 2.3 runs here, whatever the policy of its runtime, as the same
JobSet with the same replicated jobs and counts: Kueue computes them again by itself. For the jobs
in `tests/api/full/trainjobs`, `test_same_as_trainer.py` runs the real trainer and compares what
both make, field by field. They differ as this page says and in no other way.

<!-- Made by `python -m tests.api.intended_trainjob` from the list that the test uses. -->
"""
_AGENT = f"""## MPI jobs with the agent

The agent is in jobs whose nodes name no command. The annotation `{DOMAIN}/ssh: compatible` on the
TrainJob, or on the runtime's template, gives the pods upstream's keys, and `{DOMAIN}/agent: off`
leaves all of this section out, but that the launcher's command waits for names (`names`); with
`{DOMAIN}/wait-seconds: "0"` beside it, that too.
"""


def page() -> str:
    parts = (
        *(_HEAD, "## Always\n", table(ALWAYS)),
        *("## MPI jobs\n", table(MPI), _AGENT, table(AGENT)),
        *("## Flux jobs\n", table(FLUX)),
    )
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
