"""OPS-1: the bill of materials and the licences are those of the locks."""

from __future__ import annotations

import json
import re

import pytest

from tools import sbom

PARTS = sbom.parts()


def test_both_files_are_those_that_the_locks_make(capsys: pytest.CaptureFixture[str]) -> None:
    assert sbom.main(["--check"]) == 0, capsys.readouterr().out


def test_every_pin_of_every_lock_is_in_the_bill() -> None:
    bill = json.loads(sbom.BILL.read_text())
    named = {one["purl"] for one in bill["components"]}
    for lock in sbom.LOCKS.values():
        text = (sbom.ROOT / lock).read_text()
        pins = re.findall(r"^(\S+)==(\S+)", text, re.MULTILINE)
        assert pins
        assert {f"pkg:pypi/{name.lower()}@{version}" for name, version in pins} <= named
    assert any(purl.startswith("pkg:npm/react@") for purl in named)


def test_the_bill_is_cyclonedx_with_unique_references_and_no_time() -> None:
    bill = json.loads(sbom.BILL.read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", bill["serialNumber"])
    references = [one["bom-ref"] for one in bill["components"]]
    assert len({*references}) == len(references)
    assert bill["dependencies"] == [{"ref": "mpi-trainer", "dependsOn": references}]
    assert "timestamp" not in bill["metadata"]
    for one in bill["components"]:
        (licence,) = one["licenses"]
        assert {*licence} <= {"expression", "license"} and one["version"]


def test_a_licence_that_nobody_has_read_stops_the_run() -> None:
    assert sbom._known("fine", "MIT OR (Apache-2.0 AND ISC)")
    for unread in ("", "GPL-3.0-only", "MIT AND AGPL-3.0-only", "SEE LICENSE IN file"):
        with pytest.raises(ValueError, match="read its licence"):
            sbom._known("new", unread)
    with pytest.raises(ValueError, match="is not installed"):
        sbom._licence("no-such-package")
