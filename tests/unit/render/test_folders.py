"""The folders, init container and overlays that a pod is given."""

from __future__ import annotations

from typing import Any

import pytest

from mpi_trainer.layout.agent.paths import FOLDER
from mpi_trainer.layout.model import File, KeyFile, Overlay
from mpi_trainer.layout.mpijob import layout
from mpi_trainer.render import agent_scripts
from mpi_trainer.render.mpijob.children import Facts, Object, children, secret
from mpi_trainer.render.secrets import Part
from tests.unit.render.jobs import RESTRICTED, changed_spec, job, replace, with_agent

RESOURCES = {
    "requests": {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": 1},
    "limits": {"memory": "4Gi", "nvidia.com/gpu": 1, "ephemeral-storage": "1Gi"},
}


def worker(container: dict[str, Any] | None = None, **spec: Any) -> Object:
    one = job(worker=container)
    plan = with_agent(layout(one))
    plan = replace(plan, workers=(changed_spec(plan.workers[0], **spec),))
    made: Object = children(plan, one, Facts()).workers[0]["spec"]
    return made


def holding(keys: tuple[KeyFile, ...], files: tuple[File, ...]) -> Object:
    """A worker's spec with these keys and files and nothing else of the job's."""
    one = job()
    plan = layout(one)
    pod = replace(plan.workers[0], keys=keys, files=files)
    made: Object = children(replace(plan, workers=(pod,)), one, Facts()).workers[0]["spec"]
    return made


def mounts(container: Object) -> dict[str, Object]:
    return {mount["mountPath"]: mount for mount in container["volumeMounts"]}


def volume(spec: Object, path: str) -> Object:
    name = mounts(spec["containers"][0])[path]["name"]
    return next(v for v in spec["volumes"] if v["name"] == name)


def shown(spec: Object, folder: str, *config_maps: Object) -> dict[str, str]:
    """What a kubelet would put there of the ConfigMaps, by name."""
    held: dict[str, dict[str, str]] = {m["metadata"]["name"]: m["data"] for m in config_maps}
    given = volume(spec, folder)
    sources = given["projected"]["sources"] if "projected" in given else [given]
    found: dict[str, str] = {}
    for source in (one["configMap"] for one in sources if "configMap" in one):
        data, items = held[source["name"]], source.get("items")
        found |= data if items is None else {item["path"]: data[item["key"]] for item in items}
    return found


def test_preparation_is_the_main_containers_twin() -> None:
    """AC-20: what lets the one run lets the other."""
    env = [{"name": "HOME", "value": "/data"}]
    spec = worker({"securityContext": RESTRICTED, "imagePullPolicy": "Never", "env": env})
    (prepare,), main = spec["initContainers"], spec["containers"][0]
    assert prepare["command"] == ["/bin/sh", "/etc/mpi-agent/prepare.sh"]
    for field in ("image", "imagePullPolicy", "securityContext"):
        assert prepare[field] == main[field]
    assert prepare["env"] == env


def test_preparation_is_spared_mpi_s_variables() -> None:
    spec = worker()
    (prepare,), main = spec["initContainers"], spec["containers"][0]
    assert main["env"]
    assert "env" not in prepare


def test_preparation_takes_no_device_and_no_more_than_the_pod_has() -> None:
    (prepare,) = worker({"resources": RESOURCES})["initContainers"]
    assert prepare["resources"] == {
        "requests": {"cpu": "2", "memory": "4Gi"},
        "limits": {"memory": "4Gi", "ephemeral-storage": "1Gi"},
    }


def test_preparation_comes_after_the_users_own_and_under_a_name_of_its_own() -> None:
    own = {"name": "mpi-prepare", "image": "x"}
    spec = worker(initContainers=[own])
    assert [c["name"] for c in spec["initContainers"]] == ["mpi-prepare", "mpi-prepare-2"]


def test_overlays_are_for_the_main_container_only() -> None:
    spec = worker()
    (prepare,), main = spec["initContainers"], spec["containers"][0]
    shown = mounts(main)["/etc/passwd"]
    assert shown["subPath"] == "etc/passwd"
    assert shown["name"] == mounts(main)["/run/mpi-agent"]["name"]
    assert "/etc/passwd" not in mounts(prepare)


def test_preparation_mounts_what_it_needs_and_what_is_the_users() -> None:
    """P-7: every mount is stored in every pod; the user's own may hold the home folder."""
    own = {"name": "home", "mountPath": "/home/me"}
    one = job(agent="full")
    plan = layout(one)
    pods = []
    for pod in (plan.launcher, *plan.workers):
        main = {**pod.template.content["spec"]["containers"][0], "volumeMounts": [own]}
        pods.append(changed_spec(pod, containers=[main], volumes=[{"name": "home"}]))
    made = children(replace(plan, launcher=pods[0], workers=tuple(pods[1:])), one, Facts())
    for each in (*made.workers, made.launcher_job["spec"]["template"]):
        (prepare,) = each["spec"]["initContainers"]
        assert mounts(prepare).keys() == {"/home/me", FOLDER, "/run/mpi-agent"}


def test_a_file_that_the_user_mounts_is_not_covered() -> None:
    own = {"name": "users", "mountPath": "/etc/passwd", "subPath": "passwd"}
    spec = _with_own_passwd(own)
    assert [
        m for m in spec["containers"][0]["volumeMounts"] if m["mountPath"] == "/etc/passwd"
    ] == [own]


def _with_own_passwd(own: Object) -> Object:
    one = job()
    plan = with_agent(layout(one))
    main = {**plan.workers[0].template.content["spec"]["containers"][0], "volumeMounts": [own]}
    volumes = [{"name": "users", "configMap": {"name": "u"}}]
    pod = changed_spec(plan.workers[0], containers=[main], volumes=volumes)
    made: Object = children(replace(plan, workers=(pod,)), one, Facts()).workers[0]["spec"]
    return made


def test_scratch_is_in_memory_and_bounded() -> None:
    """AC-19: a key that is copied there reaches no disk."""
    source = volume(worker(), "/run/mpi-agent")["emptyDir"]
    assert source == {"medium": "Memory", "sizeLimit": "64Mi"}


def test_a_pod_gets_its_own_part_of_the_keys_only() -> None:
    """AC-19: no worker holds the key that opens workers."""
    one = job()
    made = children(with_agent(layout(one)), one, Facts())
    items = volume(made.workers[0]["spec"], "/etc/mpi-keys")["secret"]["items"]
    assert [i["key"] for i in items] == ["ssh-publickey", "ssh-host-privatekey"]
    launcher = made.launcher_job["spec"]["template"]["spec"]
    items = volume(launcher, "/etc/mpi-keys")["secret"]["items"]
    assert [i["key"] for i in items] == ["ssh-privatekey", "ssh-host-publickey"]


def test_all_mounted_keys_exist_in_the_secret() -> None:
    one = job()
    plan = with_agent(layout(one))
    parts: dict[Part, str] = {k.part: "x" for pod in plan.pods for k in pod.keys}
    made = secret(plan, one, parts)
    for pod in (one_made["spec"] for one_made in children(plan, one, Facts()).workers):
        items = volume(pod, "/etc/mpi-keys")["secret"]["items"]
        assert {i["key"] for i in items} <= made["data"].keys()


def test_files_of_one_name_and_different_content_have_a_key_each() -> None:
    """Launcher and workers read `role` in the same folder, and each its own."""
    one = job()
    made = children(with_agent(layout(one)), one, Facts())
    for pod, role in (
        (made.workers[0]["spec"], "worker"),
        (made.launcher_job["spec"]["template"]["spec"], "launcher"),
    ):
        items = volume(pod, "/etc/mpi-agent")["configMap"]["items"]
        (key,) = (i["key"] for i in items if i["path"] == "role")
        assert made.config_map["data"][key] == f"{role}\n"
    assert list(made.config_map["data"]).count("prepare.sh") == 1


def test_keys_of_several_modes_say_so_each() -> None:
    one = job()
    plan = layout(one)
    keys = (KeyFile("/k/a", "private", 0o400), KeyFile("/k/b", "public", None))
    plan = replace(plan, workers=(replace(plan.workers[0], keys=keys),))
    source = volume(children(plan, one, Facts()).workers[0]["spec"], "/k")["secret"]
    assert [i.get("mode") for i in source["items"]] == [0o400, None]
    assert "defaultMode" not in source


def test_files_and_keys_in_one_folder_come_as_one_volume() -> None:
    spec = holding(
        keys=(KeyFile("/k/key", "private", 0o400),),
        files=(File("/k/run.sh", 0o555, "#!/bin/sh\n"),),
    )
    both = volume(spec, "/k")["projected"]
    secret_, config = both["sources"]
    assert secret_["secret"]["items"] == [{"key": "ssh-privatekey", "path": "key", "mode": 0o400}]
    assert config["configMap"].keys() == {"name"}
    assert both["defaultMode"] == 0o555


def test_files_of_several_modes_beside_keys_say_so_each() -> None:
    spec = holding(
        keys=(KeyFile("/k/key", "private", None),),
        files=(File("/k/a", 0o555, "a"), File("/k/b", 0o444, "b")),
    )
    both = volume(spec, "/k")["projected"]
    _, config = both["sources"]
    assert [i["mode"] for i in config["configMap"]["items"]] == [0o555, 0o444]
    assert "defaultMode" not in both


def test_a_folder_inside_another_comes_with_its_volume() -> None:
    """A mount inside a read-only one would need a folder that is not there."""
    spec = holding(
        keys=(KeyFile("/k/keys/own", "private", None), KeyFile("/kk/own", "private", None)),
        files=(File("/k/run.sh", 0o555, "#!/bin/sh\n"), File("/k/lib/more.sh", 0o555, "")),
    )
    assert {"/k", "/kk"} <= mounts(spec["containers"][0]).keys()
    assert not {"/k/keys", "/k/lib"} & mounts(spec["containers"][0]).keys()
    secret_, config = volume(spec, "/k")["projected"]["sources"]
    assert [i["path"] for i in secret_["secret"]["items"]] == ["keys/own"]
    assert {i["path"] for i in config["configMap"]["items"]} == {"run.sh", "lib/more.sh"}


def test_an_overlay_from_nowhere_is_a_fault_of_the_layout() -> None:
    one = job()
    plan = layout(one)
    pod = replace(plan.workers[0], overlays=(Overlay("/nowhere/passwd", "/etc/passwd"),))
    with pytest.raises(ValueError, match="in no scratch folder"):
        children(replace(plan, workers=(pod,)), one, Facts())


def test_a_third_file_of_one_path_has_a_key_too() -> None:
    """No layout asks for it today; none would find out by reading another pod's file."""
    one = job()
    plan = layout(one)
    pods = [
        replace(plan.workers[0], name=f"j-worker-{n}", files=(File("/k/f", 0o444, text),))
        for n, text in enumerate("abc")
    ]
    made = children(replace(plan, workers=tuple(pods)), one, Facts())
    read = [shown(pod["spec"], "/k", made.config_map)["f"] for pod in made.workers]
    assert read == ["a", "b", "c"]


def test_scripts_are_shown_without_a_list_of_them() -> None:
    """A list would be in each of a job's pods, and a fifth of its size."""
    one = job(agent="full")
    plan = layout(one)
    made = children(plan, one, Facts())
    for pod, wanted in zip(made.workers, plan.workers, strict=True):
        both = volume(pod["spec"], FOLDER)["projected"]
        assert {"configMap": {"name": made.config_map["metadata"]["name"]}} in both["sources"]
        assert {"configMap": {"name": agent_scripts.name()}} in both["sources"]
        assert both["defaultMode"] == 0o555
        seen = shown(pod["spec"], FOLDER, made.config_map, agent_scripts.config_map("ns"))
        assert {f"{FOLDER}/{name}": text for name, text in seen.items()}.items() >= {
            (file.path, file.text) for file in wanted.files
        }
