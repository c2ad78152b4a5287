"""One training job from Python: described, run, waited for, and its log read.

Jobs run on the cluster that kubectl would use, else on this machine. The volume is
a PersistentVolumeClaim of the namespace; on this machine say which directory stands for it:

    mkdir -p /tmp/data && seq 100 > /tmp/data/numbers.txt
    export MPI_TRAINER_BACKEND=local MPI_TRAINER_CLAIMS=training-data=/tmp/data
    python job.py --workers 2 --cpu 0.5 --memory 256Mi --gpu 0
"""

import argparse
import sys
from pathlib import Path

from openshift_ai_sdk.training import MPIJob, ResourceRequirements

options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
options.add_argument("--name", default="train")
options.add_argument("--namespace", default="", help="default: that of your login")
options.add_argument("--workers", type=int, default=4)
options.add_argument("--image", default="localhost/mpi-openmpi:4.1")
options.add_argument("--cpu", default="8")
options.add_argument("--memory", default="64Gi")
options.add_argument("--gpu", type=int, default=1)
options.add_argument("--timeout", type=float, default=7200)
given = options.parse_args()

job = MPIJob(
    name=given.name,
    namespace=given.namespace,
    workers=given.workers,
    image=given.image,
    command=["mpirun", "python", "train.py"],
    resources=ResourceRequirements(cpu=given.cpu, memory=given.memory, gpu=given.gpu),
    volume_mounts=[{"name": "training-data", "mountPath": "/data"}],
    workdir=str(Path(__file__).parent),  # train.py goes with the job
)
job.create()

state = job.get_status()
print(f"{job.name} is {state}")
if state not in ["Succeeded", "Failed"]:
    try:
        state = job.wait_for_completion(timeout=given.timeout)
    except TimeoutError as late:
        sys.exit(f"{late}")
print(f"{job.name} has {state}")

again = MPIJob.get(job.name, job.namespace)
logs = again.get_logs()
print(logs, end="")
print(f"worker 0 wrote {len(again.get_logs(worker_index=0))} characters of its own")
if state == "Failed" or "Rank 0" not in logs:
    sys.exit(1)
