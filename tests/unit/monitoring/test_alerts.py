"""Every alert fires when it should and is silent while all is well; promtool runs the rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import yaml

from tests.promtool import why_not, why_unreadable
from tests.unit.monitoring.series import END, MINUTES, cluster, constant, growing
from tools.monitoring.__main__ import FOLDER
from tools.monitoring.alerts import ALERTS, RUNBOOKS, Alert

ROOT: Final = Path(__file__).parents[3]
RULES: Final = FOLDER / "prometheus/rules.yml"
PAGE: Final = (ROOT / RUNBOOKS).read_text()
_A: Final = {"namespace": "mpi-trainer", "pod": "mpi-trainer-a"}


class Case(msgspec.Struct, frozen=True):
    """What is not well, and the alert's labels and summary then; each goes on for hours."""

    changed: Mapping[str, str | None]
    summary: str
    labels: Mapping[str, str] = {}


CASES: Final[Mapping[str, Case]] = {
    "MPITrainerDown": Case(
        {"leader_election": None}, "Prometheus reads no controller of mpi-trainer."
    ),
    "MPITrainerNobodyLeads": Case(
        {"leader_election": constant(0)}, "No replica of mpi-trainer leads; no job is served."
    ),
    "MPITrainerLeaseChanges": Case(
        {
            ".*master_status.*trainer-a": "0x4 1x4 " * 18,
            ".*master_status.*trainer-b": "1x4 0x4 " * 18,
        },
        "The lease of mpi-trainer was won or lost 24 times within an hour.",
    ),
    "MPITrainerEventLoopLate": Case(
        {"event_loop_lag_seconds": constant(3)},
        "The event loop of mpi-trainer-a is late by 3s.",
        _A,
    ),
    "MPITrainerQueueLong": Case(
        {"workqueue_depth": constant(400)},
        "400 keys wait in the queue mpijob.",
        {"name": "mpijob"},
    ),
    "MPITrainerReconcilesFail": Case(
        {"controller_runtime_reconcile_errors_total": growing(30)},
        "49.18% of the reconciles of mpijob fail.",
        {"controller": "mpijob"},
    ),
    "MPITrainerProgramFault": Case(
        {"controller_runtime_webhook_panics_total": growing(1)},
        "mpi-trainer-webhook-a met a fault of its own program.",
        {"pod": "mpi-trainer-webhook-a"},
    ),
    "MPITrainerWritesRefused": Case(
        {'rest_client.*"POST",code="403"': growing(30)},
        "The API server refuses writes of mpi-trainer with status 403.",
        {"code": "403"},
    ),
    "MPITrainerAPIServerFails": Case(
        {'rest_client.*"GET",code="<error>"': growing(609)},
        "60.9% of the requests of mpi-trainer have no proper answer.",
    ),
    "MPITrainerWritesMany": Case(
        {'rest_client.*"PATCH",code="200"': growing(6000)},
        "mpi-trainer writes 100 times a second, for half an hour.",
    ),
    "MPITrainerObjectsUnreadable": Case(
        {"reflector_unreadable_objects_total": growing(1)},
        "The controller cannot read some objects of pods.",
        {"name": "pods"},
    ),
    "MPITrainerMPIJobsStuck": Case(
        {"training_operator_mpijob_time_to_running_seconds_count": constant(7)},
        "2 MPIJobs of team wait, and none began to run for an hour.",
        {"namespace": "team"},
    ),
    "MPITrainerTrainJobsStuck": Case(
        {"kubeflow_trainer_trainjob_time_to_running_seconds_count": None},
        "2 TrainJobs of team wait, and none began to run for an hour.",
        {"namespace": "team"},
    ),
    "MPITrainerAdmissionSlow": Case(
        {'.*webhook_latency_seconds_bucket.*le="1"': constant(0)},
        "One of ten answers of admission takes more than 9.1s.",
    ),
    "MPITrainerServerFails": Case(
        {"mpi_trainer_server_requests.*500": growing(20)},
        "25% of the calls of the REST API fail on our side.",
    ),
    "MPITrainerCertificateOld": Case(
        {"webhook_certificate": constant(13 * 86400)},
        "The certificate of mpi-trainer-webhook-a ends in 12d 22h 20m 0s.",
        {"namespace": "mpi-trainer", "pod": "mpi-trainer-webhook-a"},
    ),
}


def rule_test(name: str) -> dict[str, Any]:
    """With one thing amiss its alert fires, and no other."""
    alert, case = next(one for one in ALERTS if one.name == name), CASES[name]
    fired = {
        "exp_labels": {"severity": alert.severity, **case.labels},
        "exp_annotations": {
            "summary": case.summary,
            "description": alert.description,
            "runbook_url": alert.runbook,
        },
    }
    return {
        **cluster(case.changed),
        "name": name,
        "alert_rule_test": [
            {
                "eval_time": END,
                "alertname": one.name,
                "exp_alerts": [fired] if one is alert else [],
            }
            for one in ALERTS
        ],
    }


def test_every_alert_fires_on_its_own_fault_alone(tmp_path: Path) -> None:
    """OBS-1."""
    assert {*CASES} == {alert.name for alert in ALERTS}
    assert why_not(RULES, [rule_test(name) for name in CASES], tmp_path) == ""


def test_no_alert_fires_while_all_is_well(tmp_path: Path) -> None:
    """OBS-1: at every quarter of an hour; nor right after a start."""
    silent = [
        {"eval_time": f"{minute}m", "alertname": alert.name, "exp_alerts": []}
        for alert in ALERTS
        for minute in (1, 2, 5, *range(15, MINUTES, 15))
    ]
    assert why_not(RULES, [{**cluster(), "alert_rule_test": silent}], tmp_path) == ""


def test_a_rule_that_does_not_fire_as_expected_is_found(tmp_path: Path) -> None:
    """So that the tests above can fail at all."""
    one = rule_test("MPITrainerQueueLong")
    one["input_series"] = cluster()["input_series"]
    assert "MPITrainerQueueLong" in why_not(RULES, [one], tmp_path)
    broken = {"alert": "Broken", "expr": "sum(", "labels": {}}
    assert "parse error" in why_unreadable([broken], tmp_path)


def test_both_files_have_the_same_rules_and_promtool_reads_them(tmp_path: Path) -> None:
    plain = yaml.safe_load(RULES.read_text())
    operated = yaml.safe_load((FOLDER / "rules.yaml").read_text())
    assert operated["kind"] == "PrometheusRule"
    assert operated["spec"] == plain
    (group,) = plain["groups"]
    assert [rule["alert"] for rule in group["rules"]] == [alert.name for alert in ALERTS]
    assert why_unreadable(group["rules"], tmp_path) == ""


def test_every_alert_has_a_section_in_the_runbooks_and_every_section_an_alert() -> None:
    headings = re.findall(r"^## (\w+)$", PAGE, re.MULTILINE)
    assert headings == [alert.name for alert in ALERTS]
    for alert in ALERTS:
        assert alert.runbook == f"docs/runbooks.md#{alert.name.lower()}"


@pytest.mark.parametrize("alert", ALERTS, ids=lambda one: one.name)
def test_a_section_says_what_it_means_and_what_to_do(alert: Alert) -> None:
    section = PAGE.partition(f"## {alert.name}\n")[2].partition("\n## ")[0]
    assert "**Means.**" in section
    assert "**Look.**" in section
    assert "**Do.**" in section
    assert alert.description not in section, "the page says more than the alert"
    assert "$" not in alert.description
