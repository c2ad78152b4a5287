"""The machine's own settings come back as they were, however many clusters there were."""

from __future__ import annotations

from pathlib import Path

from tools.cluster.kernel import SETTINGS, raise_settings, restore_settings


def _machine(root: Path, values: dict[str, str]) -> None:
    for name, value in values.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(value)


def _values(root: Path) -> dict[str, str]:
    return {name: (root / name).read_text().strip() for name in SETTINGS}


def test_two_clusters_raise_settings_and_the_last_one_restores_them(tmp_path: Path) -> None:
    root, saved = tmp_path / "sys", tmp_path / "saved"
    saved.mkdir()
    before = {"net/ipv4/ip_forward": "0", "fs/inotify/max_user_instances": "128"}
    _machine(root, before)
    raise_settings(saved, root)
    raise_settings(saved, root)
    assert _values(root) == {name: str(value) for name, value in SETTINGS.items()}
    restore_settings(saved, root)
    assert _values(root) == before
    assert not list(saved.iterdir())


def test_a_setting_that_is_high_enough_is_left_alone(tmp_path: Path) -> None:
    root, saved = tmp_path / "sys", tmp_path / "saved"
    saved.mkdir()
    _machine(root, {"net/ipv4/ip_forward": "1", "fs/inotify/max_user_instances": "99999"})
    raise_settings(saved, root)
    assert _values(root)["fs/inotify/max_user_instances"] == "99999"
