"""What we ship that others wrote: bill of materials (CycloneDX 1.6) and licences, from the locks.

python -m tools.sbom           write docs/sbom.cdx.json and docs/licences.md
python -m tools.sbom --check   say whether they are in step

Licences are those that the installed packages and the dashboard's lock name for themselves; one
that is not in ALLOWED stops the run, to be read by a person first. The bill has no time in it, so
that the same locks make the same file. Debian's packages in an image are listed in the image.
"""

from __future__ import annotations

import json
import re
import sys
import uuid
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import msgspec

from mpi_trainer import __version__

ROOT: Final = Path(__file__).parents[1]
BILL: Final = ROOT / "docs/sbom.cdx.json"
PAGE: Final = ROOT / "docs/licences.md"
LOCKS: Final = {
    "controller, webhook, server": "requirements/controller.txt",
    "odh and SDK": "requirements/run.txt",
    "image mpi-openmpi:5.0": "images/mpi-openmpi5/requirements.txt",
    "image mpi-mpich": "images/mpi-mpich/requirements.txt",
    "image mpi-intel": "images/mpi-intel/requirements.txt",
}
DASHBOARD: Final = "dashboard"
_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", re.MULTILINE)
# Of packages that are not installed here, or that name no licence in words that machines know.
_BY_HAND: Final = {
    "impi-rt": "LicenseRef-Intel-Simplified-Software-License",
    "mpich": "mpich2",
    "openmpi": "BSD-3-Clause-Open-MPI",
    "aiosignal": "Apache-2.0",
    "editables": "MIT",
    "pathspec": "MPL-2.0",
    "protobuf": "BSD-3-Clause",
    "trove-classifiers": "Apache-2.0",
}
ALLOWED: Final = frozenset(
    {
        *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSD-3-Clause-Open-MPI", "CC0-1.0"),
        *("ISC", "MIT", "MIT-0", "MPL-2.0", "PSF-2.0", "Zlib", "mpich2"),
        "LicenseRef-Intel-Simplified-Software-License",
    }
)
_HEAD: Final = """# Licences of what we ship

mpi-trainer is Apache-2.0. This is what comes with it at the versions of the locks; the same as a
bill of materials that machines read is [sbom.cdx.json](sbom.cdx.json) (CycloneDX 1.6). Debian's
packages are listed in each image at `/usr/share/sbom`. Intel MPI is not open source: its licence
lets you use and pass on its runtime as it is.

<!-- Made by `python -m tools.sbom`. -->

| package | version | licence | in |
|---|---|---|---|
"""


class Part(msgspec.Struct, frozen=True, order=True):
    """One package at one version; `users` are what it is shipped with."""

    kind: str
    name: str
    version: str
    licence: str
    users: tuple[str, ...]

    @property
    def purl(self) -> str:
        return f"pkg:{self.kind}/{self.name.replace('@', '%40')}@{self.version}"


def parts() -> list[Part]:
    users: dict[tuple[str, str, str], list[str]] = {}
    for user, lock in LOCKS.items():
        for name, version in _PIN.findall((ROOT / lock).read_text()):
            users.setdefault(("pypi", name.lower(), version), []).append(user)
    licences = {name: _licence(name) for kind, name, _ in users}
    found = [Part(*key, licences[key[1]], tuple(by)) for key, by in users.items()]
    return sorted([*found, *_of_the_dashboard()])


def _licence(name: str) -> str:
    """As the package itself says; ValueError where it does not say it in SPDX's words."""
    if name in _BY_HAND:
        return _BY_HAND[name]
    try:
        said = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        raise ValueError(f"{name}: is not installed; write its licence into {__file__}") from None
    fields = ("License-Expression", "License")
    return _known(name, next((said[one] for one in fields if one in said), ""))


def _known(name: str, expression: str) -> str:
    words = {word for word in re.split(r" AND | OR |[()]", expression) if word.strip()}
    if not words or not words <= ALLOWED:
        raise ValueError(f"{name}: read its licence ({expression!r}), then say so in tools/sbom.py")
    return expression


def _of_the_dashboard() -> Iterator[Part]:
    lock = json.loads((ROOT / "dashboard/package-lock.json").read_text())
    for path, one in lock["packages"].items():
        if path and not one.get("dev"):
            name = path.rpartition("node_modules/")[2]
            licence = _known(name, one.get("license", ""))
            yield Part("npm", name, one["version"], licence, (DASHBOARD,))


def bill(found: Sequence[Part]) -> str:
    components = {
        part.purl: {
            "type": "library",
            "bom-ref": part.purl,
            "name": part.name,
            "version": part.version,
            "purl": part.purl,
            "licenses": [_spdx(part.licence)],
            "properties": [{"name": "shipped-with", "value": user} for user in part.users],
        }
        for part in found
    }
    made: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "mpi-trainer",
                "name": "mpi-trainer",
                "version": __version__,
                "licenses": [_spdx("Apache-2.0")],
            }
        },
        "components": list(components.values()),
        "dependencies": [{"ref": "mpi-trainer", "dependsOn": [*components]}],
    }
    name = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(made, sort_keys=True))
    return json.dumps({**made, "serialNumber": f"urn:uuid:{name}"}, indent=1) + "\n"


def _spdx(licence: str) -> dict[str, Any]:
    return {"expression": licence} if " " in licence else {"license": _single(licence)}


def _single(licence: str) -> dict[str, str]:
    own = licence.startswith("LicenseRef-")
    return (
        {"name": licence.removeprefix("LicenseRef-").replace("-", " ")} if own else {"id": licence}
    )


def page(found: Sequence[Part]) -> str:
    rows = (
        f"| {part.name} | {part.version} | {part.licence.removeprefix('LicenseRef-')} |"
        f" {', '.join(part.users)} |\n"
        for part in found
    )
    return _HEAD + "".join(rows)


def main(words: Sequence[str]) -> int:
    found = parts()
    made = {BILL: bill(found), PAGE: page(found)}
    if "--check" not in words:
        for path, text in made.items():
            path.write_text(text)
        return 0
    old = [path.name for path, text in made.items() if path.read_text() != text]
    if old:
        print(f"error: not as the locks say: {', '.join(old)}\n\nhint: run make docs")
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
