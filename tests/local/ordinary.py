"""`odh` as an ordinary user would have it: no root, a home of its own, the system's Python."""

from __future__ import annotations

import os
import shutil
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from mpi_trainer.local.mpi.distributions import named

UID = 12345
ROOT = Path(__file__).parents[2]
# Words are passed on as they are; the rest happens in a mount namespace that ends with the child.
WITH_ACCOUNT = 'mount --bind "$0" /etc/passwd && exec "$@"'


class OrdinaryUser(msgspec.Struct, frozen=True):
    """`program` takes the words of a command line; `env` is all that it gets."""

    home: Path

    @property
    def env(self) -> dict[str, str]:
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home),
            "XDG_DATA_HOME": str(self.home),
            "PYTHONPATH": ":".join((str(ROOT / "src"), sysconfig.get_path("purelib"))),
        }

    @property
    def program(self) -> tuple[str, ...]:
        become = ("setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups")
        return (
            *become,
            "/usr/bin/python3",
            "-c",
            "from mpi_trainer.cli.main import main; main()",
        )

    def with_account(self, shell: str = "/bin/sh") -> tuple[str, ...]:
        """The program on a machine whose /etc/passwd knows the user."""
        entries = self.home / "passwd"
        entry = f"tester:x:{UID}:{UID}::{self.home}:{shell}\n"
        entries.write_text(Path("/etc/passwd").read_text() + entry)
        return ("unshare", "--mount", "sh", "-c", WITH_ACCOUNT, str(entries), *self.program)

    def install(self, mpi: str) -> None:
        distribution = named(mpi)
        assert distribution is not None
        place = self.home / "mpi-trainer/mpi" / distribution.prefix.name
        shutil.copytree(distribution.prefix, place, symlinks=True)


@contextmanager
def ordinary_user() -> Iterator[OrdinaryUser]:
    """With a home that such a user can reach; pytest's own folders are closed to others."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        os.chown(folder, UID, UID)
        yield OrdinaryUser(Path(folder))
