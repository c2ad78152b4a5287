"""Issue 31, Shows 4: broken, partial, foreign and huge inputs: a clear report, nothing written."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
import yaml

from mpi_trainer.cli import job_files
from mpi_trainer.cli.main import USAGE
from tests.unit.cli.test_migrate import run
from tests.unit.migrate.cases import base

SMALL = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 10)}]\n" for n in range(9)
)
HELM = f"""\
---
# Source: chart/templates/job.yaml
# {{{{ a comment with braces }}}}
{yaml.safe_dump(base())}
---
# Source: chart/templates/empty.yaml
---
# Source: chart/templates/service.yaml
apiVersion: v1
kind: Service
metadata: {{name: x}}
...
"""


def refused(path: Path, out: Path, *words: str) -> str:
    """What is said of a file of which nothing is written."""
    ended = run("-f", str(path), "--output-dir", str(out))
    assert ended.return_value == USAGE
    assert ended.stdout == ""
    assert not out.exists()
    for word in words:
        assert word in ended.stderr
    assert len(ended.stderr) < 20_000
    return ended.stderr


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x7fELF\x02\x01\x01\x00\x00", "1:1"),
        (b"\xff\xfe\x00\x01" * 1000, "is not UTF-8 text (byte 0)"),
        (b"PK\x03\x04" + b"\x00" * 500, "1:"),
        (b"", "there is no job to convert"),
        (BOMB.encode(), "expands to more than"),
        (("a: " + "{b: " * 3000).encode(), "too deep"),
        (("[" * 100_000).encode(), "too deep"),
        (b"a: &a [*a]", "no finished anchor"),
        (b"a: !!python/object/apply:os.system [id]", "the tag"),
        (b"- not\n- a mapping\n", "a document must be a mapping"),
        (b"kind: List\nitems: [1, null, a, [b]]\n", "no job to convert"),
        (b"kind: List\napiVersion: v1\nitems: 3\n", "no job to convert"),
        (b"kind: MPIJob\napiVersion: kubeflow.org/v2beta1\n", "spec"),
        (json.dumps(base()).encode()[:-40], "1:"),
        (b"key: value\rkind: MPIJob\x00\n", ""),
    ],
    ids=range(15),
)
def test_what_is_no_job_is_told_and_nothing_is_written(
    data: bytes, words: str, tmp_path: Path
) -> None:
    path, out = tmp_path / "in.yaml", tmp_path / "out"
    path.write_bytes(data)
    try:
        refused(path, out, words)
    except Exception as error:  # as `odh` itself shows it
        assert words in f"{getattr(error, 'problem', error)}", error
        assert getattr(error, "hint", ""), "an error says what to do"
        assert not out.exists()


def test_a_file_of_a_hundred_megabytes_is_refused_and_not_read(tmp_path: Path) -> None:
    """Its first four are read, whatever it holds."""
    path, out = tmp_path / "in.yaml", tmp_path / "out"
    with path.open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    tracemalloc.start()
    said = refused(path, out, "is larger than 4 MiB")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "Give the path" in said or "give the path" in said
    assert most < 4 * job_files.LARGEST


def test_of_ten_thousand_documents_the_jobs_are_found_and_the_others_counted(
    tmp_path: Path,
) -> None:
    path = tmp_path / "in.yaml"
    path.write_text("---\n".join([SMALL] * 9_999 + [yaml.safe_dump(base())]))
    ended = run("-f", str(path), "-o", "json")
    assert ended.return_value == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["passedOver"] == {"ConfigMap": 9_999}
    assert [one["kind"] for one in found["jobs"][0]["objects"]] == ["TrainingRuntime", "TrainJob"]


def test_what_helm_renders_is_read_with_its_comments(tmp_path: Path) -> None:
    path = tmp_path / "in.yaml"
    path.write_text(HELM)
    ended = run("-f", str(path))
    assert ended.return_value == 0, ended.stderr
    assert "passed over: 1 Service" in ended.stderr


def test_one_bad_document_among_good_ones_keeps_all_from_being_written(tmp_path: Path) -> None:
    path, out = tmp_path / "in.yaml", tmp_path / "out"
    bad = base(slotsPerWorker=-1)
    bad["metadata"]["name"] = "bad"
    path.write_text(yaml.safe_dump_all([base(), bad]))
    said = refused(path, out, "spec.slotsPerWorker", "nothing was written")
    assert "in.yaml:" in said
