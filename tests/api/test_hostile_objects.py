"""Objects that nobody writes in good faith, in a real API server without our admission.

Each is told in words what is wrong with it; whoever else has a job there does not notice (S-3,
S-15, W-7).
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.api.admin import JOBS, Admin, Object
from tests.api.kubelet import Kubelet, is_launcher
from tests.api.lab import admin, controller, kubelet, served, submit, until
from tests.api.running import Controller, job
from tests.cluster import eventually

__all__ = ["admin", "controller", "kubelet", "served"]


def with_template(name: str, field: Any) -> Object:
    """A job with this below its worker's template, where the definition keeps what it is given."""
    made = job(1, name)
    made["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["x"] = field
    return made


def nested(levels: int) -> msgspec.Raw:
    return msgspec.Raw(b'{"a":' * levels + b"1" + b"}" * levels)


def send(admin: Admin, made: Object) -> None:
    """As bytes: Python's own JSON is not deep enough."""
    code, answer = admin.attempt("POST", f"{JOBS}/mpijobs", msgspec.json.encode(made))
    assert code == 201, answer[:500]


def served_beside(admin: Admin, kubelet: Kubelet, name: str) -> None:
    kubelet.finish = lambda pod: 0 if is_launcher(pod) else None
    submit(admin, job(1, name))
    until(admin, "Succeeded", name)


def unreadable(controller: Controller, admin: Admin) -> float:
    return controller.metric(
        f'reflector_unreadable_objects_total{{name="{admin.namespace}/mpijobs"}}'
    )


def test_job_of_1100_levels_is_told_and_counted_and_stops_nobody(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """S-3: by the watch, and by the list of a controller that starts."""
    send(admin, with_template("deep", nested(1100)))
    served_beside(admin, kubelet, "by-watch")
    assert unreadable(controller, admin) >= 1
    eventually("an event", lambda: any("nested too deeply" in e[2] for e in admin.events()))
    controller.stop()
    controller.start()
    served_beside(admin, kubelet, "by-list")
    assert unreadable(controller, admin) >= 1
    code, _ = admin.attempt("DELETE", f"{JOBS}/mpijobs/deep")
    assert code == 200


@pytest.mark.parametrize(
    ("field", "words"),
    [
        pytest.param("y" * 1_300_000, ("spec: Too long: has 1300", "262144 (256 KiB)"), id="1.3MB"),
        pytest.param(nested(300), ("levels deep, and at most 100 are read",), id="300-levels"),
        pytest.param([{}] * 60_000, (), id="60000-empty-parts"),
    ],
)
def test_job_that_cannot_be_read_fails_in_words(
    admin: Admin, kubelet: Kubelet, controller: Controller, field: Any, words: tuple[str, ...]
) -> None:
    """W-7: a job of 1.4 MB failed with words about labels."""
    send(admin, with_template("odd", field))
    served_beside(admin, kubelet, "other")
    if words:
        failed = until(admin, "Failed", "odd")
        assert failed["reason"] == "ValidationError"
        assert all(word in failed["message"] for word in words), failed["message"]


BOMBS = [
    "pass" * 1000,
    "-eyJ" * 1000,
    "mpi-agent 1\nlevel full\nended Command 0\nhost a " + ",".join(["0-999999"] * 400),
    "mpi-agent 1\nlevel full\nended Command 0\nlost 0-999999999999999999 a\n",
]


@pytest.mark.parametrize("words", BOMBS, ids=["pass", "eyJ", "ranges", "range"])
def test_last_words_of_a_launcher_stop_nobody(
    admin: Admin, kubelet: Kubelet, controller: Controller, words: str
) -> None:
    """S-1, S-2: 4 KiB took minutes, or all memory, at every look."""
    submit(admin, job(1, "bomb", backoffLimit=0))
    eventually("a launcher runs", lambda: any(_runs(p) for p in admin.pods("launcher")))
    kubelet.exit(admin.pods("launcher")[0], 3, message=words[:4096])
    failed = until(admin, "Failed", "bomb")
    assert len(failed["message"]) < 2000
    if "mpi-agent" in words:
        assert "summary cannot be read" in failed["message"]
    served_beside(admin, kubelet, "other")


def _runs(pod: Object) -> bool:
    return bool(pod["status"].get("phase") == "Running")
