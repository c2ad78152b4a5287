"""The scripts that start Flux, run for real with a stand-in for `flux` itself, which is in no image
that tests have: it writes down how it is called."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mpi_trainer.api.effective.combine import effective
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml import load
from mpi_trainer.layout.policies import flux
from tests.golden.trainjob.objects import FOLDER

FLUX = """#!/bin/sh
if [ "$1" = R ]; then shift 2; printf 'R %s\\n' "$*"; exit; fi
for word; do printf '<%s>' "$word" >>"$CALLS"; done
echo >>"$CALLS"
[ "$(wc -l <"$CALLS")" -ge "${ENOUGH:-1}" ]
"""


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A container's folders, with Flux copied by the real init script."""
    found = load.objects((FOLDER / "flux" / "in.yaml").read_text(), "in.yaml")
    (job,), (runtime,) = found.train_jobs, found.runtimes
    assert isinstance(job, TrainJob)
    assert isinstance(runtime, Runtime)
    made = flux.broker(effective(job, runtime), "team", "")
    for name in ("flux-config", "view/abc/bin", "software", "opt", "curve", "bin"):
        (tmp_path / name).mkdir(parents=True)
    for name, text in made.files.items():
        (tmp_path / "flux-config" / name).write_text(_moved(text, tmp_path))
    (tmp_path / "curve/curve.cert").write_text("key")
    (tmp_path / "software/tool").write_text("tool")
    (tmp_path / "view/abc/bin/flux").write_text(FLUX)
    (tmp_path / "view/abc/bin/flux").chmod(0o755)
    (tmp_path / "bin/hostname").write_text("#!/bin/sh\necho $POD\n")
    (tmp_path / "bin/sleep").write_text("#!/bin/sh\n")
    for name in ("hostname", "sleep"):
        (tmp_path / "bin" / name).chmod(0o755)
    subprocess.run(["bash", str(tmp_path / "flux-config/init.sh")], check=True)
    return tmp_path


def _moved(text: str, root: Path) -> str:
    places = {
        "/etc/flux-config": "flux-config",
        "/opt/views/._view": "view",
        "/opt/software/": "opt/",
        "/opt/software": "software",
        "/mnt/flux": "flux",
        "/curve/curve.cert >": "curve/curve.cert >",
    }
    for old, new in places.items():
        text = text.replace(old, f"{root}/{new}")
    return text


def run(node: Path, pod: str, *command: str, enough: int = 1) -> tuple[list[str], str]:
    """How `flux` was called, and what was said."""
    path = f"{node}/bin:/usr/bin:/bin"
    variables = {"PATH": path, "POD": pod, "CALLS": f"{node}/calls", "ENOUGH": str(enough)}
    start = ["bash", str(node / "flux-config/entrypoint.sh"), *command]
    ended = subprocess.run(start, env=variables, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    return (node / "calls").read_text().splitlines(), ended.stderr


def test_the_first_node_runs_the_command_word_for_word(node: Path) -> None:
    (call,), _ = run(node, "pi-node-0-0", "sh", "-c", "a  'b' && c", "*")
    assert call.startswith(f"<broker><--config-path={node}/flux/config/etc/flux/config>")
    assert call.endswith("<flux><run><-N><3><-n><6><-g><1><sh><-c><a  'b' && c><*>")


def test_without_a_command_the_first_node_waits(node: Path) -> None:
    (call,), _ = run(node, "pi-node-0-0")
    assert call.endswith("<sleep><infinity>")


def test_another_node_tries_until_the_first_answers(node: Path) -> None:
    calls, said = run(node, "pi-node-0-2", "lmp", enough=3)
    assert len(calls) == 3
    assert all("<run>" not in call for call in calls)
    assert said.count("the broker of pi-node-0-0 does not answer yet") == 2


def test_what_the_broker_reads_is_in_its_place_and_its_key_is_private(node: Path) -> None:
    run(node, "pi-node-0-0", "lmp")
    config = node / "flux/config/etc"
    assert (config / "flux/system/R").read_text() == (
        "R --hosts=pi-node-0-[0-2] --cores=0-1 --gpus=0-1\n"
    )
    assert 'host = "pi-node-0-[0-2]"' in (config / "flux/config/broker.toml").read_text()
    assert (config / "curve/curve.cert").stat().st_mode & 0o777 == 0o600
    assert (node / "opt/tool").read_text() == "tool"
