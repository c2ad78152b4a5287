"""A cluster for the dashboard's browser tests, told what to do by lines of JSON.

    python -m tests.browser_lab

A real API server, the controller, and `python -m mpi_trainer.server` as processes of their own; a
kubelet is played. There are two projects, `alpha` and `beta`, with one person in each who may work
there and nowhere else, and an administrator. Prints one line for each line that it is told, and
ends with its standard input.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from tests.api.accounts import account
from tests.api.admin import JOBS, Admin, Object
from tests.api.kubelet import Kubelet
from tests.api.kubelet_logs import KubeletLogs
from tests.api.running import Controller, free_port, job
from tests.cluster import Kubectl, api_spec, eventually
from tools.cluster import controlplane, processes
from tools.cluster.build import build
from tools.cluster.client import Client
from tools.cluster.components import CONTROL
from tools.cluster.down import down
from tools.cluster.spec import Spec
from tools.cluster.up import up

ROOT: Final = Path(__file__).parents[1]
PROJECTS: Final = ("alpha", "beta")
MANY: Final = "many"
AT_ONCE: Final = 16


class Server:
    """Ours, on one port for as long as the lab runs."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        words = ["-m", "mpi_trainer.server", "--forwarded-token", "--port", str(self.port)]
        words += ["--kubeconfig", str(self._spec.kubeconfig), *OPTIONS]
        log = (self._spec.state / "log" / "server.log").open("ab")
        with log:
            self._process = subprocess.Popen([sys.executable, *words], stdout=log, stderr=log)
        eventually("the server listens", lambda: bool(_listens(self.port)), 60)

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(30)
            self._process = None


OPTIONS: Final = ("--grafana", "https://grafana.example.com/d/mpijob-overview")


def _listens(port: int) -> int:
    words = ["curl", "-s", "-o", os.devnull, f"http://127.0.0.1:{port}/healthz"]
    return not subprocess.run(words, check=False).returncode


class Lab:
    def __init__(self, spec: Spec, server: Server, admins: dict[str, Admin]) -> None:
        self._spec = spec
        self._server = server
        self._admins = admins
        self._tokens: dict[str, str] = {}
        self._kubelets: dict[str, Kubelet] = {}
        self.logs: KubeletLogs

    def people(self) -> Object:
        """Who has which token: a name is that of the project, and `admin`."""
        for name in PROJECTS:
            one = Kubectl(self._spec, name)
            self._tokens[name] = account(one, "person", "mpijob-user").token
        everything = Kubectl(self._spec, PROJECTS[0])
        everything("create", "serviceaccount", "admin")
        whom = f"--serviceaccount={PROJECTS[0]}:admin"
        everything("create", "clusterrolebinding", "lab", "--clusterrole=cluster-admin", whom)
        self._tokens["admin"] = everything("create", "token", "admin").strip()
        return {"address": f"http://127.0.0.1:{self._server.port}", "tokens": self._tokens}

    @contextmanager
    def nodes(self) -> Iterator[None]:
        with ExitStack() as stack:
            self.logs = stack.enter_context(KubeletLogs(self._admins[PROJECTS[0]]))
            for name in PROJECTS:
                made = Kubelet(self._admins[name], tick=0.3, node=self.logs.node)
                self._kubelets[name] = stack.enter_context(made)
            yield

    # --- what a test may ask for -------------------------------------------------------------

    def submit(self, project: str, name: str, workers: int = 1, **policy: Any) -> None:
        command = ("mpirun", "-n", str(workers), "python", "train.py")
        made = job(workers, name, command=command, **policy)
        self._admins[project].create(f"{JOBS}/mpijobs", made)

    def until(self, project: str, name: str, state: str) -> None:
        admin = self._admins[project]
        eventually(f"{name} is {state}", lambda: admin.holds(state, name), 120)

    def say(self, lines: list[str]) -> None:
        """Every container says the same."""
        self.logs.say(*lines)

    def fail(self, project: str, name: str, workers: list[int], code: int) -> None:
        """These workers are killed for the memory that they took."""
        for pod in self._admins[project].pods():
            if pod["metadata"]["name"] in {f"{name}-worker-{one}" for one in workers}:
                self._kubelets[project].exit(pod, code, reason="OOMKilled")

    def fill(self, jobs: int) -> int:
        """So many jobs in a project of their own, which nobody controls."""
        admin = self._admins[MANY]
        there = len(admin.every(f"{JOBS}/mpijobs"))

        def one(number: int) -> None:
            admin.create(f"{JOBS}/mpijobs", job(4, f"train-{number:05}"))

        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(one, range(there, jobs)))
        return len(admin.every(f"{JOBS}/mpijobs"))

    def token(self, project: str, seconds: int) -> str:
        """One that ends so soon that the API server itself would not make it."""
        return _token(self._spec, Kubectl(self._spec, project), seconds)

    def server(self, how: str) -> None:
        if how == "start":
            self._server.start()
        else:
            self._server.end(signal.SIGKILL)

    def api(self, how: str) -> None:
        """`stop`: it does not answer. `kill`: nobody listens."""
        pid = processes.recorded(self._spec.state)["apiserver"]
        if how == "start":
            self._start_api()
        else:
            number = {"stop": signal.SIGSTOP, "continue": signal.SIGCONT, "kill": signal.SIGKILL}
            os.kill(pid, number[how])

    def _start_api(self) -> None:
        program = build([CONTROL])["kubernetes-api"].bin / "kube-apiserver"
        processes.start(
            self._spec.state,
            "apiserver",
            controlplane.apiserver(self._spec, program),
            environment=controlplane.tuning(self._spec),
        )
        eventually("the API server is ready", Client(self._spec).ready, 60)


def _token(spec: Spec, kubectl: Kubectl, seconds: int) -> str:
    """The API server's own kind of token, signed by its key."""
    key = serialization.load_pem_private_key((spec.state / "pki/sa.key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    head, body, _ = kubectl("create", "token", "person").strip().split(".")
    claims = json.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    claims |= {"exp": int(time.time()) + seconds}
    signed = f"{head}.{_part(json.dumps(claims).encode())}"
    r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{signed}.{_part(r.to_bytes(32) + s.to_bytes(32))}"


def _part(value: bytes) -> str:
    return urlsafe_b64encode(value).decode().rstrip("=")


def main() -> None:
    signal.signal(signal.SIGTERM, _ended)
    with ExitStack() as stack:
        wanted = api_spec("browser")
        down(wanted.name)  # what is left of a run that was killed has other projects
        spec = up(wanted)
        stack.callback(down, spec.name)
        kubectl = Kubectl(spec)
        kubectl("apply", "-f", str(ROOT / "manifests/crds/kubeflow.org_mpijobs.yaml"))
        kubectl("apply", "-k", str(ROOT / "manifests/roles"))
        eventually("jobs are served", lambda: not kubectl.attempt("get", "mpijobs").returncode)
        admins = {name: Admin(spec, name) for name in (*PROJECTS, MANY)}
        for one in admins.values():
            stack.callback(one.close)
            kubectl("create", "namespace", one.namespace)
        server = Server(spec)
        server.start()
        stack.callback(server.end)
        flags = (f"--namespaces={','.join(PROJECTS)}", "--leader-elect=false", "--beside-upstream")
        stack.enter_context(Controller(spec.kubeconfig, *flags))
        lab = Lab(spec, server, admins)
        stack.enter_context(lab.nodes())
        print(json.dumps(lab.people()), flush=True)
        _answer(lab)


def _ended(*_: object) -> None:
    sys.exit(1)


def _answer(lab: Lab) -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        work: Callable[..., Any] = getattr(lab, asked.pop("do"))
        print(json.dumps(work(**asked)), flush=True)


if __name__ == "__main__":
    main()
