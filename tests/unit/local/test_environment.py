"""A container's variables are what a kubelet would make of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_trainer.api.kinds.pods import Container
from mpi_trainer.local.errors import CannotApply
from mpi_trainer.local.pods.environment import Materials, PodFacts, environment, expanded

FACTS = PodFacts(
    name="train-worker-0",
    namespace="team",
    address="10.0.0.3",
    node="train-worker-0",
    labels={"app.example/part": "solver"},
    annotations={"note": "a b"},
)
MATERIALS = Materials(
    config_maps={"settings": {"LEVEL": b"3", "MODE": b"fast"}},
    secrets={"login": {"TOKEN": b"s3cret", "BYTES": b"\xff\xfe", "ZERO": b"a\0b"}},
)


def variables(*env: dict[str, Any], env_from: Any = (), base: Any = ()) -> dict[str, str]:
    data = {"name": "main", "env": env, "envFrom": env_from}
    return environment(msgspec.convert(data, Container), base, FACTS, MATERIALS)


def value_from(**source: Any) -> dict[str, Any]:
    return {"name": "A", "valueFrom": source}


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("$(A)-$(B.b)", "1-2"),
        ("$(C)", "$(C)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$", "$$"),
        ("100$", "100$"),
        ("$A ${A}", "$A ${A}"),
        ("$(A", "$(A"),
        ("$()", "$()"),
        ("$(a b)", "spaced"),
        ("$(x$(A))", "$(x$(A))"),
        ("$(SELF)", "$(A)"),
    ],
)
def test_a_reference_expands_as_in_a_kubelet(text: str, result: str) -> None:
    known = {"A": "1", "B.b": "2", "SELF": "$(A)", "a b": "spaced"}
    assert expanded(text, known) == result


@given(st.text(alphabet="$()AB \n"))
def test_expansion_without_dollar_pairs_or_known_names_changes_nothing(text: str) -> None:
    if "$$" not in text:
        assert expanded(text, {}) == text


@given(st.text())
def test_doubled_dollars_give_back_any_text(text: str) -> None:
    assert expanded(text.replace("$", "$$"), {"A": "1"}) == text


def test_a_reference_sees_what_stands_before_it_and_not_what_comes_after() -> None:
    env = variables(
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)$(C)"},
        {"name": "C", "value": "3"},
    )
    assert env == {"A": "1", "B": "1$(C)", "C": "3"}


def test_a_reference_sees_env_from() -> None:
    source = [{"configMapRef": {"name": "settings"}}]
    assert variables({"name": "A", "value": "$(LEVEL)"}, env_from=source)["A"] == "3"


def test_a_reference_does_not_see_the_machine_below() -> None:
    """On a cluster it would not see the image's variables either."""
    base = (("PATH", "/usr/bin"), ("HOME", "/home/me"))
    env = variables({"name": "PATH", "value": "/opt:$(PATH)"}, base=base)
    assert env == {"PATH": "/opt:$(PATH)", "HOME": "/home/me"}


def test_the_later_of_two_wins() -> None:
    base = (("A", "base"), ("LEVEL", "base"))
    env = variables(
        {"name": "A", "value": "first"},
        {"name": "A", "value": "second"},
        {"name": "LEVEL", "value": "own"},
        env_from=[{"configMapRef": {"name": "settings"}}],
        base=base,
    )
    assert (env["A"], env["LEVEL"], env["MODE"]) == ("second", "own", "fast")


def test_env_from_takes_every_key_with_its_prefix() -> None:
    env = variables(
        env_from=[
            {"configMapRef": {"name": "settings"}, "prefix": "S_"},
            {"secretRef": {"name": "absent", "optional": True}},
        ]
    )
    assert env == {"S_LEVEL": "3", "S_MODE": "fast"}


def test_a_variable_without_a_value_is_empty() -> None:
    assert variables({"name": "A"}) == {"A": ""}


@pytest.mark.parametrize(
    ("path", "result"),
    [
        ("metadata.name", "train-worker-0"),
        ("metadata.namespace", "team"),
        ("metadata.labels['app.example/part']", "solver"),
        ("metadata.labels['absent']", ""),
        ("metadata.annotations['note']", "a b"),
        ("status.podIP", "10.0.0.3"),
        ("status.podIPs", "10.0.0.3"),
        ("status.hostIPs", "10.0.0.3"),
        ("spec.nodeName", "train-worker-0"),
        ("spec.serviceAccountName", "default"),
    ],
)
def test_a_field_reference_reads_the_pod(path: str, result: str) -> None:
    assert variables(value_from(fieldRef={"fieldPath": path}))["A"] == result


@pytest.mark.parametrize("path", ["metadata.labels", "spec.nothing", "metadata.labels[x]", ""])
def test_an_unknown_field_is_refused_with_those_there_are(path: str) -> None:
    with pytest.raises(CannotApply) as caught:
        variables(value_from(fieldRef={"fieldPath": path}))
    assert f"fieldRef {path}:" in caught.value.problem
    assert "status.podIP" in caught.value.hint


def test_keys_are_read_from_config_maps_and_secrets() -> None:
    config = value_from(configMapKeyRef={"name": "settings", "key": "LEVEL"})
    assert variables(config)["A"] == "3"
    secret = value_from(secretKeyRef={"name": "login", "key": "TOKEN"})
    assert variables(secret)["A"] == "s3cret"


def test_bytes_of_a_secret_reach_the_program_unchanged() -> None:
    value = variables(value_from(secretKeyRef={"name": "login", "key": "BYTES"}))["A"]
    assert value.encode(errors="surrogateescape") == b"\xff\xfe"


@pytest.mark.parametrize("ref", ["configMapKeyRef", "secretKeyRef"])
@pytest.mark.parametrize("name", ["settings", "login", "absent"])
def test_an_optional_key_that_is_missing_leaves_the_variable_unset(ref: str, name: str) -> None:
    source = {ref: {"name": name, "key": "absent", "optional": True}}
    assert variables(value_from(**source)) == {}


@pytest.mark.parametrize(
    ("env", "env_from", "words"),
    [
        ([value_from(secretKeyRef={"name": "login", "key": "K"})], [], "env A: there is no Secret"),
        (
            [value_from(configMapKeyRef={"name": "x", "key": "K"})],
            [],
            "no ConfigMap x with the key K",
        ),
        (
            [],
            [{"configMapRef": {"name": "x"}}],
            "envFrom of container main: there is no ConfigMap x",
        ),
        ([], [{"secretRef": {"name": "x"}}], "envFrom of container main: there is no Secret x"),
    ],
)
def test_what_is_missing_is_named(env: Any, env_from: Any, words: str) -> None:
    with pytest.raises(CannotApply) as caught:
        variables(*env, env_from=env_from)
    assert words in caught.value.problem
    assert "same file" in caught.value.hint


def test_a_zero_byte_is_refused_without_showing_the_secret() -> None:
    with pytest.raises(CannotApply, match=r"env A of container main: .* zero byte") as caught:
        variables(value_from(secretKeyRef={"name": "login", "key": "ZERO"}))
    assert "a\0b" not in str(caught.value)


def test_a_source_without_local_meaning_leaves_the_variable_unset() -> None:
    assert variables(value_from(resourceFieldRef={"resource": "limits.cpu"})) == {}
