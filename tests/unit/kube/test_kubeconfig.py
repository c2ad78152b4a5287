"""A kubeconfig is what the YAML library makes of it, also where it is not asked."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from mpi_trainer.kube.errors import ConfigError
from mpi_trainer.kube.kubeconfig import read

TEXT = """\
# written by hand
apiVersion: v1
clusters:
- name: c
  cluster:
    server: "https://x:6443"
    extensions:
    - name: e
      extension: {}
contexts: []
users:
"""
VALUES = (
    *("x", "a b", "", "~", "null", "Null", "true", "True", "yes", "No", "on", "y", "1", "0x1f"),
    *("1.5", "1e3", ".inf", "2024-01-01", "1:30", "'1'", '"true"', "[a, 1]", "{a: b, c: [d]}"),
    *("/path", "LS0tLS1CRUdJTg==", "https://x/y", "-1", "=", "<<", "a: b", "[", "*a", "|", "!x y"),
)  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
def test_a_value_is_what_the_library_makes_of_it(tmp_path: Path, value: str) -> None:
    text = TEXT.replace("{}", value)
    (tmp_path / "config").write_text(text)
    try:
        wanted = yaml.safe_load(text)["clusters"][0]["cluster"]["extensions"][0]["extension"]
    except yaml.YAMLError:
        with pytest.raises(ConfigError, match="not a kubeconfig"):
            read([tmp_path / "config"])
        return
    extensions = read([tmp_path / "config"]).clusters["c"][0].extensions
    assert extensions is not None
    assert extensions[0].extension == wanted
    assert type(extensions[0].extension) is type(wanted)
