"""The two wheels, as they are built and installed into empty environments.

`openshift-ai-sdk` has the SDK and `odh`; `mpi-trainer` adds what runs inside a cluster and depends
on it. Dependencies are those of the locked requirements; ours come from a folder and nowhere else.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SDK, WHOLE = "openshift-ai-sdk", "mpi-trainer"
PROGRAM = """\
from openshift_ai_sdk.training import MPIJob
job = MPIJob("wheel", workers=2, command=["hostname"]).create()
print(job.wait_for_completion(timeout=100))
print(job.get_logs())
job.delete()
"""

pytestmark = pytest.mark.timeout(400)


def run(*words: str | Path, **env: str) -> str:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "PYTHON", "COV"))}
    done = subprocess.run(
        words, env=clean | env, capture_output=True, text=True, cwd="/", timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("wheels")
    found = {}
    for name, project in ((SDK, ROOT), (WHOLE, ROOT / "packages" / WHOLE)):
        program = "import os, sys; os.chdir(sys.argv[1]); from hatchling.build import build_wheel; "
        program += "print(build_wheel(sys.argv[2]))"
        made = run(sys.executable, "-c", program, project, folder)
        found[name] = folder / made.split()[-1]
    return found


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_every_file_is_in_one_wheel_and_in_no_other(wheels: dict[str, Path]) -> None:
    sdk, whole = names(wheels[SDK]), names(wheels[WHOLE])
    assert not sdk & whole
    # `odh install` needs the definitions, which are not below `src`.
    assert "mpi_trainer/cli/installation/crds/kubeflow.org_mpijobs.yaml" in sdk
    listed = subprocess.run(
        ["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    present = {one for one in listed.stdout.split() if (ROOT / one).exists()}
    assert sdk | whole >= {one.removeprefix("src/") for one in present}
    assert {one.split("/")[1] for one in whole} == {"controller", "webhook"}


def test_wheels_are_light_and_of_one_version(wheels: dict[str, Path]) -> None:
    sizes = {name: wheel.stat().st_size // 1024 for name, wheel in wheels.items()}
    with zipfile.ZipFile(wheels[SDK]) as archive:
        pages = [one for one in archive.infolist() if "/server/static/" in one.filename]
    # Built before, or not: `make wheels` builds it.
    dashboard = sum(one.compress_size for one in pages) // 1024
    print(f"KiB: {sizes}, of these dashboard: {dashboard}")
    assert sizes[SDK] - dashboard < 1280 and sizes[WHOLE] < 512 and dashboard < 3072
    assert len({wheel.name.split("-")[1] for wheel in wheels.values()}) == 1


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An environment with the locked dependencies and nothing of ours."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    found = folder / "bin" / "python"
    lock = ROOT / "requirements" / "controller.txt"
    uv = Path(sys.executable).parent / "uv"
    run(uv, "pip", "install", "--quiet", "--python", found, "--require-hashes", "-r", lock)
    yield found


def pip(python: Path, *words: str | Path) -> str:
    return run(python, "-m", "pip", "--disable-pip-version-check", *words)


def install(python: Path, name: str, wheels: dict[str, Path]) -> None:
    pip(python, "install", "--no-index", "--find-links", wheels[name].parent, name)


def works(python: Path, state: Path) -> None:
    """`odh run` and the SDK, with real MPI."""
    env = {"MPI_TRAINER_BACKEND": "local", "XDG_STATE_HOME": str(state)}
    odh = python.parent / "odh"
    ended = run(odh, "run", "-w", "2", "--", "echo", "hello", **env)
    assert ended.count("hello") == 2
    answered = run(python, "-c", PROGRAM, **env)
    assert answered.startswith("Succeeded\n") and "wheel-worker-1" in answered


def test_sdk_alone_gives_odh_and_the_sdk(
    wheels: dict[str, Path], python: Path, tmp_path: Path
) -> None:
    install(python, SDK, wheels)
    works(python, tmp_path)
    assert "mpi_trainer.controller" not in pip(python, "show", "--files", SDK)
    pip(python, "uninstall", "-y", SDK)
    assert not (python.parent / "odh").exists()


def test_both_are_installed_and_either_is_removed(
    wheels: dict[str, Path], python: Path, tmp_path: Path
) -> None:
    install(python, WHOLE, wheels)  # brings the SDK
    works(python, tmp_path)
    controller = ("-m", "mpi_trainer.controller", "--help")
    assert "--namespace" in run(python, *controller)
    pip(python, "uninstall", "-y", WHOLE)
    works(python, tmp_path)
    install(python, WHOLE, wheels)
    pip(python, "uninstall", "-y", SDK)
    left = subprocess.run([python, "-m", "pip", "check"], capture_output=True, text=True)
    assert f"mpi-trainer 0.1.0 requires {SDK}, which is not installed" in left.stdout
    kept = pip(python, "show", "--files", WHOLE)
    assert "mpi_trainer/controller/__main__.py" in kept
    install(python, WHOLE, wheels)  # and all is well again
    assert "Usage" in run(python.parent / "odh", "--help")
    pip(python, "uninstall", "-y", WHOLE, SDK)
