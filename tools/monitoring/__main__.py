"""Writes what Grafana and Prometheus read; a check tells whether it is in step.

python -m tools.monitoring           write
python -m tools.monitoring --check   name what is out of step, and fail
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from tools.monitoring.alerts import ALERTS
from tools.monitoring.overview import OVERVIEW
from tools.monitoring.service import SERVICE

FOLDER: Final = Path(__file__).parents[2] / "manifests/monitoring"
DASHBOARDS: Final = (OVERVIEW, SERVICE)
_HEADER: Final = "# Made from tools/monitoring by `make manifests`; not to be edited.\n"


def files() -> Mapping[str, str]:
    """By path within the folder."""
    groups = {"groups": [{"name": "mpi-trainer", "rules": [alert.rule() for alert in ALERTS]}]}
    rules = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "mpi-trainer"},
        "spec": groups,
    }
    return {
        "rules.yaml": _HEADER + _yaml(rules),
        "prometheus/rules.yml": f"{_HEADER}# For a Prometheus without the operator: a file of"
        f" rule_files.\n{_yaml(groups)}",
        **{f"dashboards/{one.uid}.json": one.text() for one in DASHBOARDS},
    }


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, width=100)


def stale() -> list[str]:
    """Files that are not as they would be made, and dashboards that nothing makes."""
    made = files()
    extra = {f"dashboards/{path.name}" for path in FOLDER.glob("dashboards/*.json")} - {*made}
    there = {name: FOLDER / name for name in made}
    changed = {
        name for name, path in there.items() if not path.exists() or path.read_text() != made[name]
    }
    return sorted(extra | changed)


def main(words: Sequence[str]) -> int:
    if "--check" in words:
        old = stale()
        if old:
            print(f"error: not as tools/monitoring makes them: {', '.join(old)}")
            print("\nhint: run make manifests")
        return 1 if old else 0
    for name, text in files().items():
        (FOLDER / name).parent.mkdir(exist_ok=True)
        (FOLDER / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
