"""A kubelet for a cluster without nodes: it places pods, runs them, and confirms deletions.

Only what a kubelet and a scheduler would do to a pod's status is done here; everything else in
these tests is real. What a pod's program does is the test's choice: `hold` keeps pods Pending,
`exit` ends one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from tests.api.admin import Admin, Object, Refusal

NODE = "fake-node"
ROLE = "training.kubeflow.org/job-role"


class Kubelet:
    """Works in a thread of its own while it is entered."""

    def __init__(self, admin: Admin, *, tick: float = 0.1, node: str = NODE) -> None:
        self.admin = admin
        self.node = node
        self.hold: Callable[[Object], bool] = lambda pod: False
        self.unready: Callable[[Object], bool] = lambda pod: False
        self.keep: Callable[[Object], bool] = lambda pod: False
        self.finish: Callable[[Object], int | None] = lambda pod: None
        self.why = ""
        self._tick = tick
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.faults: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join(120)
        assert not self._thread.is_alive(), "the kubelet does not end"

    # --- what tests do to pods ---------------------------------------------------------------

    def exit(self, pod: Object, code: int = 0, **more: str) -> None:
        """The program ends; `more` are the container's reason or message."""
        phase = "Failed" if code else "Succeeded"
        container = pod["spec"]["containers"][0]["name"]
        ended = {"exitCode": code, "reason": "Error" if code else "Completed", **more}
        state = {"name": container, "ready": False, "state": {"terminated": ended}}
        state |= {"image": "x", "imageID": "", "restartCount": 0}
        self._status(pod, {"phase": phase, "containerStatuses": [state]})

    def evict(self, pod: Object) -> None:
        text = "The node was low on resource: memory."
        self._status(pod, {"phase": "Failed", "reason": "Evicted", "message": text})

    # --- its daily work ----------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stop.wait(self._tick):
            try:
                for pod in self.admin.pods():
                    self._look(pod)
            except Refusal as refusal:
                if refusal.code not in (404, 409):
                    self.faults.append(str(refusal))
            except OSError as error:
                self.faults.append(str(error))

    def _look(self, pod: Object) -> None:
        phase = pod.get("status", {}).get("phase", "Pending")
        if pod["metadata"].get("deletionTimestamp"):
            if not self.keep(pod):
                if phase in ("Pending", "Running") and pod["spec"].get("nodeName"):
                    self.exit(pod, 143)
                self.admin.delete(f"api/v1/pods/{pod['metadata']['name']}", grace=0)
        elif phase == "Pending":
            self._start(pod)
        elif phase == "Running":
            ready = "False" if self.unready(pod) else "True"
            if _ready(pod) != ready:
                self._status(pod, {"conditions": _conditions(pod, ready)})
            code = self.finish(pod)
            if code is not None:
                self.exit(pod, code)

    def _start(self, pod: Object) -> None:
        if self.hold(pod):
            if self.why and not pod.get("status", {}).get("conditions"):
                said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
                self._status(pod, {"conditions": [{**said, "message": self.why}]})
            return
        name = pod["metadata"]["name"]
        if not pod["spec"].get("nodeName"):
            target = {"apiVersion": "v1", "kind": "Node", "name": self.node}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}}
            self.admin.create(f"api/v1/pods/{name}/binding", {**binding, "target": target})
        ready = "False" if self.unready(pod) else "True"
        container = pod["spec"]["containers"][0]["name"]
        state = {"name": container, "ready": ready == "True", "state": {"running": {}}}
        state |= {"image": "x", "imageID": "", "restartCount": 0}
        self._status(
            pod,
            {
                "phase": "Running",
                "conditions": _conditions(pod, ready),
                "containerStatuses": [state],
            },
        )

    def _status(self, pod: Object, status: Object) -> None:
        meta = pod["metadata"]
        body = {"metadata": {"uid": meta["uid"]}, "status": status}
        self.admin.patch(f"api/v1/pods/{meta['name']}/status", body)


def is_launcher(pod: Object) -> bool:
    return bool(pod["metadata"]["labels"].get(ROLE) == "launcher")


def is_worker(pod: Object) -> bool:
    return bool(pod["metadata"]["labels"].get(ROLE) == "worker")


def _ready(pod: Object) -> str:
    conditions = pod["status"].get("conditions", [])
    return next((str(c["status"]) for c in conditions if c["type"] == "Ready"), "")


def _conditions(pod: Object, ready: str) -> list[Object]:
    return [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": ready}]
