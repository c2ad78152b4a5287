"""What a job asks for and does not get is said, also where no webhook is (C-15)."""

from __future__ import annotations

from tests.api.admin import Admin
from tests.api.kubelet import Kubelet
from tests.api.lab import admin, controller, kubelet, served, submit, until
from tests.api.running import Controller, job

__all__ = ["admin", "controller", "kubelet", "served"]


def test_fields_without_effect_are_told_once_in_one_event(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    policy = {"minAvailable": 2, "priorityClass": "high"}
    submit(admin, job(1, schedulingPolicy=policy))
    submit(admin, job(1, "plain"))
    until(admin, "Running")
    until(admin, "Running", "plain")
    (launcher,) = [p for p in admin.pods("launcher") if p["metadata"]["name"].startswith("pi-")]
    kubelet.exit(launcher)
    until(admin, "Succeeded")
    told = [text for _, reason, text in admin.events() if reason == "FieldsWithoutEffect"]
    assert len(told) == 1
    assert "minAvailable, priorityClass have no effect" in told[0]
