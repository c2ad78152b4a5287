"""docs/observability.md tells of log lines and queries as they are."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
from pathlib import Path
from typing import Any

import msgspec

from mpi_trainer.runtime.logs import JsonFormatter
from mpi_trainer.server import calls
from mpi_trainer.server.callers import Caller
from mpi_trainer.server.endpoints import ENDPOINTS
from tests.promtool import why_not, why_unreadable

PAGE = (Path(__file__).parents[3] / "docs/observability.md").read_text()
CHANGES = next(one for one in ENDPOINTS if one.changes and one.kind)


def fields(heading: str) -> list[str]:
    """Of the table under a heading."""
    section = PAGE.partition(f"{heading}\n")[2].partition("\n#")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


class Asked(msgspec.Struct):
    namespace: str = "team"
    job: str = "train"


class Known:
    async def user(self) -> str:
        return "ada"


def line_of(logger: logging.Logger, speak: Any) -> dict[str, Any]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        speak()
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    found: dict[str, Any] = json.loads(stream.getvalue())
    return found


def test_every_line_has_the_fields_that_the_page_names() -> None:
    logger = logging.Logger("mpi_trainer.test")
    line = line_of(logger, lambda: logger.warning("said"))
    assert [*line] == fields("## Logs")


def test_an_audit_line_has_the_fields_that_the_page_names() -> None:
    backend: Any = Known()
    asked: Any = Asked()
    work = calls._note(CHANGES, asked, Caller("id", backend), (201, 0.25))
    line = line_of(calls.audit, lambda: asyncio.run(work))
    base = fields("## Logs")
    assert [name for name in line if name not in base] == fields("### Audit")
    assert (line["user"], line["status"], line["logger"]) == ("ada", 201, calls.audit.name)
    assert f'"logger":"{calls.audit.name}"' in PAGE


def test_the_query_for_gpu_hours_counts_running_pods_alone(tmp_path: Path) -> None:
    (query,) = re.findall(r"```promql\n(.*?)```", PAGE, re.DOTALL)
    assert why_unreadable([{"record": "gpu:hours", "expr": query}], tmp_path) == ""
    gpus = "kube_pod_container_resource_requests"
    series = {
        f'{gpus}{{namespace="team",pod="a",container="c",resource="nvidia_com_gpu"}}': "4x180",
        f'{gpus}{{namespace="team",pod="b",container="c",resource="nvidia_com_gpu"}}': "8x180",
        'kube_pod_status_phase{namespace="team",pod="a",phase="Running"}': "1x120 0x60",
        'kube_pod_status_phase{namespace="team",pod="b",phase="Running"}': "0x180",
    }
    told = [{"series": name, "values": values} for name, values in series.items()]
    sample = {"labels": '{namespace="team"}', "value": 13 * 4 / 6}
    asked = {"expr": query, "eval_time": "180m", "exp_samples": [sample]}
    none = tmp_path / "none.yml"
    none.write_text("groups: []\n")
    test = {"interval": "1m", "input_series": told, "promql_expr_test": [asked]}
    assert why_not(none, [test], tmp_path) == ""
