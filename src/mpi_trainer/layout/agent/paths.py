"""Where the agent's things are in a pod, the same in every pod of every job."""

from __future__ import annotations

FOLDER = "/etc/mpi-agent"
"""scripts and settings, read-only"""

SCRATCH = "/run/mpi-agent"
"""the pod's own, writable: keys in the form that ssh wants, records of ranks"""

KEYS = f"{FOLDER}/keys"
"""the parts of the job's keys that this pod is given"""

SSH_CONFIG = f"{SCRATCH}/ssh/config"
ALIVE = f"{SCRATCH}/alive"
QUIET = f"{SCRATCH}/quiet"
"""of the launcher: there while its ranks have been quiet for long, see `quiet.sh`"""
PASSWD = f"{SCRATCH}/passwd"
LAUNCH = f"{FOLDER}/launch"
WORKER = f"{FOLDER}/worker"
PREPARE = f"{FOLDER}/prepare"
NAMES = f"{FOLDER}/names"
RANK = f"{FOLDER}/rank"
PORT = 2222
