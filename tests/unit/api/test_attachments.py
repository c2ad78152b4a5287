from __future__ import annotations

import pytest

from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.yaml.attachments import MAX_BYTES, ConfigMap, Secret, errors

NAMED = ObjectMeta(name="c")


@pytest.mark.parametrize(
    ("item", "part"),
    [
        (ConfigMap(), "metadata.name: Required value"),
        (Secret(metadata=ObjectMeta(name="A")), "metadata.name: Invalid value"),
        (ConfigMap(metadata=NAMED, data={"a/b": ""}), "data[a/b]: Invalid value"),
        (ConfigMap(metadata=NAMED, binary_data={"a": "%"}), "text under data"),
        (Secret(metadata=NAMED, data={"a/b": ""}), "data[a/b]: Invalid value"),
        (ConfigMap(metadata=NAMED, data={"a": ""}, binary_data={"a": ""}), "Duplicate value"),
        (ConfigMap(metadata=NAMED, data={"a": "x" * (MAX_BYTES + 1)}), "Too long"),
    ],
)
def test_companion_is_refused(item: ConfigMap | Secret, part: str) -> None:
    [error] = errors(item)
    assert part in str(error)


def test_binary_data_becomes_bytes() -> None:
    item = ConfigMap(metadata=NAMED, data={"t": "x"}, binary_data={"b": "AP8=\n"})
    assert errors(item) == ()
    assert item.files == {"t": b"x", "b": b"\x00\xff"}


def test_secret_is_not_shown() -> None:
    item = Secret(metadata=NAMED, string_data={"password": "hunter2"}, data={"x": "hunter!"})
    assert "hunter" not in repr(item) + str([str(error) for error in errors(item)])
