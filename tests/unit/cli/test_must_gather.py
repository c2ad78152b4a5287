"""OBS-5: what `odh must-gather` asks an API server for. That it is sound: `test_redacted_facts`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from mpi_trainer.cli.verbs import doctor_cluster, must_gather
from mpi_trainer.cli.verbs.must_gather import Gathered
from mpi_trainer.kube.config import Config
from mpi_trainer.kube.requests import Request

LABELS = ("training.kubeflow.org/job-name", "mpi-trainer.opendatahub.io/trainjob")


class Server:
    """Lists of one namespace; of events `many` pages, each with 500 of other objects."""

    def __init__(self, pods: dict[str, list[dict[str, Any]]], many: int = 1) -> None:
        self.pods = pods
        self.many = many

    def call(self, asked: Request) -> dict[str, Any]:
        query = dict(asked.query)
        if asked.path.endswith("/pods"):
            return {"items": self.pods.get(query.get("labelSelector", ""), [])}
        if asked.path.endswith("/events"):
            page = int(query.get("continue", "0"))
            names = [*(f"other-{n}" for n in range(500)), f"pi-worker-{page}", "pie", "pi"]
            last = page + 1 == self.many
            items = [{"involvedObject": {"name": name}} for name in names]
            return {"items": items, "metadata": {} if last else {"continue": str(page + 1)}}
        return {"items": []}

    def fetch(self, asked: Request) -> bytes:
        return asked.path.encode()


def gathered(server: Server, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr(doctor_cluster, "examine", lambda _config: [])
    config = Config(server="https://localhost", namespace="team")
    notes = Gathered(datetime.now(UTC))
    found = must_gather._files(server, config, "mpi-trainer", ["pi"], notes)  # type: ignore[arg-type]
    return {name: content.decode() for name, content in found}


def pod(name: str, **further: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "team", "name": name},
        "spec": {"containers": [{"name": "node"}], **further},
    }


@pytest.mark.parametrize("label", LABELS)
def test_logs_of_a_jobs_pods_are_in_it_whichever_kind_it_is(
    label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = gathered(Server({f"{label}=pi": [pod("pi-node-0-0-abcde")]}), monkeypatch)
    assert "jobs/pi/logs/pi-node-0-0-abcde-node.log" in files


def test_logs_of_init_containers_are_in_it_and_of_their_attempt_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copies = pod("pi-worker-0", initContainers=[{"name": "copy"}])
    copies["status"] = {"initContainerStatuses": [{"name": "copy", "restartCount": 1}]}
    files = gathered(Server({f"{LABELS[0]}=pi": [copies]}), monkeypatch)
    logs = {name.removeprefix("jobs/pi/logs/pi-worker-0-") for name in files if "/logs/" in name}
    assert logs == {"copy.log", "copy-previous.log", "node.log"}


def test_events_of_a_job_are_found_among_those_of_a_large_namespace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events = yaml.safe_load(gathered(Server({}, many=4), monkeypatch)["jobs/pi/events.yaml"])
    names = {one["involvedObject"]["name"] for one in events}
    assert names == {"pi", *(f"pi-worker-{n}" for n in range(4))}
