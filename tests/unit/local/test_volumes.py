"""What a container's mounts come to on one machine."""

from __future__ import annotations

from typing import Any

import pytest

from mpi_trainer.api.kinds.pods import PodTemplate
from mpi_trainer.local.errors import CannotApply
from mpi_trainer.local.pods.environment import Materials
from mpi_trainer.local.pods.pod import PodFile, PodMount
from mpi_trainer.local.pods.volumes import PodVolumes, pod_volumes

MATERIALS = Materials(
    config_maps={"settings": {"a.ini": b"A", "b.ini": b"B"}, "odd": {"..": b"x"}},
    secrets={"login": {"token": b"T"}},
)


def seen(source: dict[str, Any], **mount: Any) -> PodVolumes:
    """One volume of that source, mounted at /at or where `mount` says."""
    content = {
        "containers": [{"volumeMounts": [{"name": "v", "mountPath": "/at", **mount}]}],
        "volumes": [{"name": "v", **source}],
    }
    spec = PodTemplate.of({"spec": content}).view.spec
    return pod_volumes(spec, spec.containers[0], MATERIALS, {"data": "/claims/data"})


def config(**fields: Any) -> dict[str, Any]:
    return {"configMap": {"name": "settings", **fields}}


def test_an_empty_dir_is_a_directory_of_the_pods_own() -> None:
    assert seen({"emptyDir": {}}).mounts == (PodMount(None, "/at"),)
    assert seen({"emptyDir": {}}, readOnly=True).mounts == (PodMount(None, "/at", True),)


@pytest.mark.parametrize("path", ["/dev/shm", "/dev/shm/", "dev/shm", "/dev//shm"])
def test_an_empty_dir_at_dev_shm_is_its_size(path: str) -> None:
    medium = {"medium": "Memory", "sizeLimit": "1.5Gi"}
    assert seen({"emptyDir": medium}, mountPath=path) == PodVolumes(shm_bytes=3 * 2**29)


def test_an_empty_dir_at_dev_shm_without_a_limit_has_none() -> None:
    assert seen({"emptyDir": {"medium": "Memory"}}, mountPath="/dev/shm") == PodVolumes()


def test_a_size_may_be_a_number() -> None:
    assert seen({"emptyDir": {"sizeLimit": 4096}}, mountPath="/dev/shm").shm_bytes == 4096


def test_a_host_path_is_the_path_itself() -> None:
    source = {"hostPath": {"path": "/srv/data"}}
    assert seen(source).mounts == (PodMount("/srv/data", "/at"),)
    part = seen(source, subPath="x/y", readOnly=True)
    assert part.mounts == (PodMount("/srv/data/x/y", "/at", True),)


def test_a_claim_is_its_directory() -> None:
    source = {"persistentVolumeClaim": {"claimName": "data"}}
    assert seen(source, subPath="run1").mounts == (PodMount("/claims/data/run1", "/at"),)
    read_only = {"persistentVolumeClaim": {"claimName": "data", "readOnly": True}}
    assert seen(read_only).mounts == (PodMount("/claims/data", "/at", True),)


def test_a_claim_that_nobody_gave_is_named() -> None:
    with pytest.raises(CannotApply, match="claim other") as caught:
        seen({"persistentVolumeClaim": {"claimName": "other"}})
    assert "--claim other=" in caught.value.hint


def test_a_config_map_is_its_files_in_a_read_only_directory() -> None:
    assert seen(config()) == PodVolumes(
        mounts=(PodMount(None, "/at", True),),
        files=(PodFile("/at/a.ini", 0o644, b"A"), PodFile("/at/b.ini", 0o644, b"B")),
    )


def test_a_secret_is_its_files_with_their_modes() -> None:
    items = [{"key": "token", "path": "keys/id"}, {"key": "token", "path": "open", "mode": 0o444}]
    source = {"secret": {"secretName": "login", "defaultMode": 0o400, "items": items}}
    assert seen(source).files == (
        PodFile("/at/keys/id", 0o400, b"T"),
        PodFile("/at/open", 0o444, b"T"),
    )


@pytest.mark.parametrize("part", ["a.ini", "./a.ini", "a.ini/"])
def test_a_sub_path_shows_one_file_where_the_mount_path_is(part: str) -> None:
    only = seen(config(), subPath=part, mountPath="/etc/app.ini")
    assert only == PodVolumes(files=(PodFile("/etc/app.ini", 0o644, b"A"),))


def test_a_sub_path_can_be_a_folder_of_items() -> None:
    items = [{"key": "a.ini", "path": "x/a"}, {"key": "b.ini", "path": "xy/b"}]
    part = seen(config(items=items), subPath="x")
    assert part == PodVolumes((PodMount(None, "/at", True),), (PodFile("/at/a", 0o644, b"A"),))


def test_a_sub_path_that_shows_nothing_is_refused() -> None:
    with pytest.raises(CannotApply, match=r"settings has nothing at subPath 'c\.ini'"):
        seen(config(), subPath="c.ini")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"configMap": {"name": "absent"}}, "volume v: there is no ConfigMap absent"),
        ({"secret": {"secretName": "absent"}}, "volume v: there is no Secret absent"),
        (config(items=[{"key": "c", "path": "c"}]), "volume v: ConfigMap settings has no key c"),
    ],
)
def test_what_is_missing_is_named_unless_optional(source: dict[str, Any], words: str) -> None:
    with pytest.raises(CannotApply, match=words):
        seen(source)
    (kind, fields), *_ = source.items()
    assert seen({kind: {**fields, "optional": True}}) == PodVolumes((PodMount(None, "/at", True),))


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../b"])
@pytest.mark.parametrize(
    "source",
    [
        {"hostPath": {"path": "/srv"}},
        {"persistentVolumeClaim": {"claimName": "data"}},
        {"configMap": {"name": "settings"}},
    ],
)
def test_a_sub_path_never_leaves_its_volume(source: dict[str, Any], path: str) -> None:
    with pytest.raises(CannotApply, match=r"subPath .* leaves the volume"):
        seen(source, subPath=path)


@pytest.mark.parametrize(
    "source",
    [
        config(items=[{"key": "a.ini", "path": "../a"}]),
        config(items=[{"key": "a.ini", "path": "/etc/a"}]),
        {"configMap": {"name": "odd"}},
    ],
)
def test_a_file_never_leaves_its_volume(source: dict[str, Any]) -> None:
    with pytest.raises(CannotApply, match="leaves the volume"):
        seen(source)


def test_a_mount_path_is_absolute_and_without_detours() -> None:
    assert seen({"emptyDir": {}}, mountPath="data/").mounts == (PodMount(None, "/data"),)
    one = seen(config(), subPath="a.ini", mountPath="/a/../../etc/x")
    assert one.files == (PodFile("/etc/x", 0o644, b"A"),)


def test_a_volume_without_local_meaning_is_left_out() -> None:
    assert seen({"nfs": {"server": "s", "path": "/"}}) == PodVolumes()


def test_a_mount_of_the_jobs_own_volume_is_left_to_the_job() -> None:
    assert seen({"emptyDir": {}}, name="ssh-auth") == PodVolumes()
