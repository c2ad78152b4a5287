"""A cluster without JobSet: TrainJobs cannot be served, MPIJobs are."""

from __future__ import annotations

from tests.api.admin import Admin
from tests.api.kubelet import Kubelet
from tests.api.lab import admin, controller, kubelet, served, submit, until
from tests.api.running import Controller, job

__all__ = ["admin", "controller", "kubelet", "served"]


def test_mpijobs_are_served_and_the_log_says_what_is_missing(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    submit(admin, job())
    until(admin, "Running")
    assert "TrainJobs are not served: the API server has no jobsets" in controller.log()
