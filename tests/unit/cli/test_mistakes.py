"""What is said of errors that the machine causes (S-9)."""

from __future__ import annotations

import errno

from mpi_trainer.cli.output.errors import explained


def test_folder_in_another_users_home_is_told_with_a_remedy() -> None:
    said = explained(PermissionError(errno.EACCES, "Permission denied", "/root/.local")) or ""
    assert "error: /root/.local: Permission denied" in said
    assert "`su -` or `sudo -H`" in said


def test_full_disk_is_not_told_as_a_missing_right() -> None:
    said = explained(OSError(errno.ENOSPC, "No space left on device", "/tmp/a")) or ""
    assert "sudo" not in said
