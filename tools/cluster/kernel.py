"""Settings of the whole machine that nodes need, raised while any cluster has nodes.

Packets are forwarded between nodes and host, and every kubelet and containerd takes inotify
instances, of which a user has 128 unless told otherwise: with them gone a kubelet ends at once.
Danger: the values belong to the machine. The first cluster saves them, the last restores them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

_ROOT: Final = Path("/proc/sys")
SETTINGS: Final = {
    "net/ipv4/ip_forward": 1,
    "fs/inotify/max_user_instances": 8192,
}


def raise_settings(saved: Path, root: Path = _ROOT) -> None:
    """Raise what is too low, and remember in `saved` what it was. The caller holds the lock."""
    for name, wanted in SETTINGS.items():
        setting, kept = root / name, _kept(saved, name)
        if not kept.exists():
            kept.write_text(setting.read_text())
        if int(setting.read_text()) < wanted:
            setting.write_text(str(wanted))


def restore_settings(saved: Path, root: Path = _ROOT) -> None:
    """Give every setting its old value back. The caller holds the lock."""
    for name in SETTINGS:
        kept = _kept(saved, name)
        if kept.exists():
            (root / name).write_text(kept.read_text())
            kept.unlink()


def _kept(saved: Path, name: str) -> Path:
    return saved / f"{name.rpartition('/')[2]}.saved"
