"""OBS-5, OBS-4: what leaves a cluster in a report has no secrets and a bounded size."""

from __future__ import annotations

import json

import pytest

from mpi_trainer.sdk import redacted_facts
from mpi_trainer.sdk.redacted_facts import log_file, object_file, redacted_object

SECRET = "hunter2-hunter2"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW0ifQ.c2lnbmF0dXJlLXNpZ25hdHVyZQ"


def test_values_of_variables_are_left_out_and_their_names_stay() -> None:
    container = {
        "name": "main",
        "env": [
            {"name": "PLAIN", "value": SECRET},
            {"name": "REF", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ],
        "args": ["--password", "x", f"--token={SECRET}"],
    }
    found = redacted_object({"kind": "Pod", "spec": {"containers": [container]}})
    assert SECRET not in json.dumps(found)
    made = found["spec"]["containers"][0]
    assert [one["name"] for one in made["env"]] == ["PLAIN", "REF"]
    assert made["env"][1]["valueFrom"]["secretKeyRef"]["name"] == "s"


@pytest.mark.parametrize(
    "args",
    [
        ["--password", SECRET, "-x"],
        ["sh", "-c", f"train --db-password {SECRET} --epochs 3"],
        ["-api-key", SECRET],
        [f"--token '{SECRET} {SECRET}' -x"],
    ],
)
def test_the_word_after_an_option_that_names_a_secret_is_left_out(args: list[str]) -> None:
    found = redacted_object({"args": args})
    assert SECRET not in json.dumps(found)
    assert len(found["args"]) == len(args)


def test_options_that_name_no_secret_keep_their_words() -> None:
    args = ["--epochs", "3", "--token-free", "--lr", "1", "--data /x --model y"]
    assert redacted_object({"args": args}) == {"args": args}


def test_variables_of_a_spec_in_an_annotation_are_left_out() -> None:
    """As the webhook keeps an MPIJob that was stored as v1alpha1."""
    container = {"name": "mpi", "env": [{"name": "PLAIN", "value": SECRET}]}
    kept = {"from": "kubeflow.org/v1alpha1", "spec": {"template": {"containers": [container]}}}
    notes = {"mpi-trainer.opendatahub.io/conversion": json.dumps(kept), "other": "{" * 5000}
    found = redacted_object({"metadata": {"annotations": notes}})
    assert SECRET not in json.dumps(found)
    assert "PLAIN" in found["metadata"]["annotations"]["mpi-trainer.opendatahub.io/conversion"]


def test_contents_of_secrets_and_config_maps_are_left_out_wherever_they_stand() -> None:
    made = [
        {"kind": kind, "metadata": {"name": "n"}, field: {"file": SECRET}}
        for kind, field in (("Secret", "data"), ("Secret", "stringData"), ("ConfigMap", "data"))
    ]
    found = redacted_object({"kind": "List", "items": made})
    assert SECRET not in json.dumps(found)
    assert [one["metadata"]["name"] for one in found["items"]] == ["n", "n", "n"]


def test_what_kubectl_last_applied_is_left_out() -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": SECRET, "mine": "kept"}
    found = redacted_object({"metadata": {"annotations": annotations, "managedFields": [{}]}})
    assert found == {"metadata": {"annotations": {"mine": "kept"}}}


def test_tokens_in_a_log_are_cut_out_and_its_end_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redacted_facts, "LARGEST", 4000)
    lines = [f"line {n}" for n in range(1000)]
    text = log_file("\n".join([*lines, f"Authorization: Bearer {JWT}", "the end"]).encode())
    assert len(text) <= 4000
    assert JWT.encode() not in text
    assert text.endswith(b"the end")
    assert text.split(b"\n")[0].startswith(b"line "), "begins with a whole line"


def test_a_large_object_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redacted_facts, "LARGEST", 4000)
    made = object_file({"text": ["word " * 10] * 200})
    assert len(made) <= 4000
    assert made.endswith(b"[cut: the rest is left out]\n")
