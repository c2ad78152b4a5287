"""A user of the public Kubeflow SDK, run by the interpreter that has it: `SCENARIO NAMESPACE`.

Not a test by itself. Every scenario uses nothing but the SDK's public functions and prints what
they gave as one JSON document, for the tests to judge.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from kubeflow.common.types import KubernetesBackendConfig  # type: ignore[import-not-found]
from kubeflow.trainer import (  # type: ignore[import-not-found]
    CustomTrainer,
    CustomTrainerContainer,
    TrainerClient,
)
from kubeflow.trainer.options import (  # type: ignore[import-not-found]
    ActiveDeadlineSeconds,
    Annotations,
    Labels,
    Name,
    TrainerArgs,
    TrainerCommand,
)
from kubeflow.trainer.options.kubernetes import (  # type: ignore[import-not-found]
    ContainerPatch,
    JobSetSpecPatch,
    JobSetTemplatePatch,
    JobSpecPatch,
    JobTemplatePatch,
    PodSpecPatch,
    PodTemplatePatch,
    ReplicatedJobPatch,
    RuntimePatch,
    TrainingRuntimeSpecPatch,
)

RUNTIME = "mpi-openmpi-cpu"


def train(word: str) -> None:
    """What a data scientist writes; it is sent as text, so it imports what it needs itself."""
    import os
    import socket
    import time

    from mpi4py import MPI

    world = MPI.COMM_WORLD
    total = world.allreduce(world.rank)
    print("rank", world.rank, "sum", total, "on", socket.gethostname(), flush=True)
    print("words", word, os.environ["GIVEN"], flush=True)
    time.sleep(10)  # long enough to be seen running


def fail() -> None:
    raise SystemExit(7)


def runtimes(client: Any) -> Any:
    def told(runtime: Any) -> Any:
        trainer = runtime.trainer
        return [runtime.kind.value, trainer.framework, trainer.image, trainer.num_nodes]

    listed = {runtime.name: told(runtime) for runtime in client.list_runtimes()}
    one = client.get_runtime(RUNTIME)
    return {"listed": listed, "one": told(one), "command": list(one.trainer.command)}


def function(client: Any) -> Any:
    """The whole life of a job that is a function; integers arrive as floats."""
    trainer = CustomTrainer(
        func=train,
        func_args={"word": "hello"},
        num_nodes=2,
        resources_per_node={"cpu": 1, "memory": "300Mi"},
        env={"GIVEN": "to ranks"},
    )
    name = client.train(runtime=client.get_runtime(RUNTIME), trainer=trainer)
    running = client.wait_for_job_status(name, {"Running"}, timeout=200, polling_interval=1)
    followed = list(client.get_job_logs(name, follow=True))
    done = client.wait_for_job_status(name, timeout=200, polling_interval=1)
    gone = {
        "running": job(running),
        "followed": followed,
        "done": job(done),
        "logs": list(client.get_job_logs(name)),
        "events": sorted({event.reason for event in client.get_job_events(name)}),
        "listed": [one.name == name for one in client.list_jobs()],
        "of_runtime": len(client.list_jobs(runtime=client.get_runtime(RUNTIME))),
        "of_another": len(client.list_jobs(runtime=client.get_runtime("mpi-mpich-cpu"))),
    }
    client.delete_job(name)
    return {**gone, "left": len(client.list_jobs())}


def failing(client: Any) -> Any:
    name = client.train(runtime=RUNTIME, trainer=CustomTrainer(func=fail, num_nodes=2))
    try:
        client.wait_for_job_status(name, timeout=120, polling_interval=1)
    except RuntimeError as error:
        return {"error": str(error), "name": name, "status": client.get_job(name).status}
    return {}


def packages(client: Any) -> Any:
    """It prints what the job printed; one node, and mpirun without a hostfile."""
    client.get_runtime_packages(client.get_runtime(RUNTIME))
    return {"left": len(client.list_jobs())}


def container(client: Any) -> Any:
    """A command with every option that the SDK has for a cluster."""
    volume = {"name": "extra", "emptyDir": {}}
    mount = {"name": "extra", "mountPath": "/extra"}
    pod = PodSpecPatch(
        volumes=[volume], containers=[ContainerPatch(name="node", volume_mounts=[mount])]
    )
    template = JobTemplatePatch(spec=JobSpecPatch(template=PodTemplatePatch(spec=pod)))
    jobs = [ReplicatedJobPatch(name=name, template=template) for name in ("launcher", "node")]
    patch = TrainingRuntimeSpecPatch(
        template=JobSetTemplatePatch(spec=JobSetSpecPatch(replicated_jobs=jobs))
    )
    image = client.get_runtime(RUNTIME).trainer.image
    name = client.train(
        runtime=RUNTIME,
        trainer=CustomTrainerContainer(image=image, num_nodes=2, env={"GIVEN": "here"}),
        options=[
            Name("by-options"),
            Labels({"team": "red"}),
            Annotations({"example.com/why": "test"}),
            TrainerCommand(["mpirun", "-n", "2", "sh", "-c"]),
            TrainerArgs(["test -d /extra && echo $GIVEN"]),
            ActiveDeadlineSeconds(300),
            RuntimePatch(training_runtime_spec=patch),
        ],
    )
    done = client.wait_for_job_status(name, timeout=120, polling_interval=1)
    return {"done": job(done), "logs": list(client.get_job_logs(name))}


def job(found: Any) -> Any:
    steps = [[step.name, step.status, step.pod_name, step.device] for step in found.steps]
    return {"status": found.status, "nodes": found.num_nodes, "steps": steps}


SCENARIOS = (runtimes, function, failing, packages, container)


def main(scenario: str, namespace: str) -> None:
    known = {one.__name__: one for one in SCENARIOS}
    begun = time.monotonic()
    client = TrainerClient(KubernetesBackendConfig(namespace=namespace))
    found = known[scenario](client)
    print(json.dumps({**found, "seconds": time.monotonic() - begun}))


if __name__ == "__main__":
    main(*sys.argv[1:])
