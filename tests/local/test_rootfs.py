"""What a pod sees of the file system, planned without touching one."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_trainer.local.pods.pod import PodFile, PodMount
from mpi_trainer.local.pods.rootfs import (
    Bind,
    Cover,
    HostFacts,
    Kind,
    Made,
    MountPathError,
    Op,
    Placed,
    Tmpfs,
    Wanted,
    below,
    plan,
    survey,
)

HOST: dict[str, Kind] = {
    **dict.fromkeys(
        ("/", "/etc", "/etc/ssh", "/mnt", "/mnt/disk", "/opt", "/tmp", "/tmp/job", "/run"), "dir"
    ),
    **dict.fromkeys(("/home", "/home/u", "/home/u/p", "/big", "/dev", "/dev/shm", "/src"), "dir"),
    **dict.fromkeys(("/proc", "/sys"), "dir"),
    "/etc/hosts": "file",
    "/src/one": "file",
}
FACTS = HostFacts(kinds=HOST)
OWN = ("/home/u", "/home/u/p", "/tmp/job")


def ops(*, facts: HostFacts = FACTS, **wanted: object) -> dict[str, Op]:
    made = plan(Wanted(own=OWN, share_source="/scratch/share", **wanted), facts)  # type: ignore[arg-type]
    return {op.target: op for op in made}


def layer(op: Op) -> dict[str, Made]:
    assert isinstance(op, Tmpfs | Cover)
    return {item.path: item for item in op.made}


def test_root_is_shared_and_tmp_shm_and_run_are_private() -> None:
    seen = ops(shm_bytes=1 << 20)
    assert seen["/"] == Bind("/", "/")
    assert {p for p, op in seen.items() if isinstance(op, Tmpfs)} == {"/tmp", "/dev/shm", "/run"}
    shm = seen["/dev/shm"]
    assert isinstance(shm, Tmpfs)
    assert shm.size == 1 << 20
    assert seen["/run/mpi-agent"] == Bind("/scratch/share", "/run/mpi-agent")
    assert set(layer(seen["/run"])) >= {"sshd", "mpi-agent"}


def test_existing_file_is_bound_over_and_nothing_is_covered() -> None:
    seen = ops(files=(PodFile("/etc/hosts", 0o644, b"x"),))
    assert seen["/etc/hosts"] == Placed("/etc/hosts", 0o644, b"x")
    assert not [op for op in seen.values() if isinstance(op, Cover)]


def test_missing_file_covers_its_nearest_system_directory() -> None:
    seen = ops(
        files=(PodFile("/etc/mpi/hostfile", 0o600, b"x"), PodFile("/etc/ssh/k/y", 0o600, b"y"))
    )
    assert layer(seen["/etc"]) == {"mpi/hostfile": Made("mpi/hostfile", 0o600, b"x")}
    assert layer(seen["/etc/ssh"]) == {"k/y": Made("k/y", 0o600, b"y")}
    assert seen["/"] == Bind("/", "/")


def test_missing_top_level_directory_rebuilds_the_root() -> None:
    seen = ops(mounts=(PodMount("/src", "/data/set"), PodMount(None, "/data/tmp")))
    root = seen["/"]
    assert isinstance(root, Cover)
    assert not root.overlay
    assert set(layer(root)) == {"data/set", "data/tmp"}
    assert set(root.bare) == {"proc", "run", "tmp"}
    assert seen["/data/set"] == Bind("/src", "/data/set")
    assert isinstance(seen["/data/tmp"], Tmpfs)


def test_file_source_gets_a_file_as_its_mount_point() -> None:
    seen = ops(mounts=(PodMount("/src/one", "/opt/app/one"),))
    assert layer(seen["/opt"])["app/one"].content == b""


def test_own_volume_replaces_the_default_at_its_path() -> None:
    seen = ops(mounts=(PodMount(None, "/dev/shm"), PodMount("/src", "/tmp")))
    assert isinstance(seen["/dev/shm"], Tmpfs)
    assert seen["/tmp"] == Bind("/src", "/tmp")


def test_shared_directories_below_tmp_stay_visible() -> None:
    seen = ops(shared=("/tmp/job", "/home/u"))
    assert seen["/tmp/job"] == Bind("/tmp/job", "/tmp/job")
    assert "job" in layer(seen["/tmp"])
    assert "/home/u" not in seen


def test_paths_through_links_are_resolved() -> None:
    facts = HostFacts(kinds=HOST, resolved={"/var/run/x": "/run/x"})
    seen = ops(facts=facts, mounts=(PodMount("/src", "/var/run/x"),))
    assert seen["/run/x"] == Bind("/src", "/run/x")
    assert "x" in layer(seen["/run"])


@pytest.mark.parametrize(
    ("target", "owner"),
    [
        ("/home/u/p/data", "/home/u"),
        ("/home/u/new", "/home/u"),
        ("/big/new", "/big"),
        ("/mnt/disk/new", "/mnt/disk"),
    ],
)
def test_user_directories_are_never_covered(target: str, owner: str) -> None:
    facts = HostFacts(kinds=HOST, foreign=frozenset({"/mnt/disk"}))
    with pytest.raises(MountPathError) as caught:
        ops(facts=facts, mounts=(PodMount("/src", target),))
    assert str(caught.value) == (
        f"mountPath {target}: this directory does not exist; "
        f"create it with mkdir -p {target} or choose a mountPath outside {owner}"
    )


def test_directory_that_the_user_may_write_is_not_covered() -> None:
    facts = HostFacts(kinds=HOST, writable=frozenset({"/opt"}))
    with pytest.raises(MountPathError, match="mkdir -p /opt/new"):
        ops(facts=facts, mounts=(PodMount("/src", "/opt/new"),))


def test_missing_path_inside_a_volume_names_the_directory_to_make() -> None:
    with pytest.raises(MountPathError, match="mkdir -p /src/inner"):
        ops(mounts=(PodMount("/src", "/mnt"), PodMount(None, "/mnt/inner")))


def test_home_that_is_the_root_directory_protects_nothing() -> None:
    made = plan(Wanted(own=("/",), mounts=(PodMount("/src", "/opt/new"),)), FACTS)
    assert any(op.target == "/opt" for op in made)


def test_survey_sees_kinds_links_and_inner_paths(tmp_path: Path) -> None:
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "file").write_text("")
    base = str(tmp_path)
    wanted = Wanted(
        files=(PodFile(f"{base}/link/new/f", 0o600, b""),),
        mounts=(PodMount(f"{base}/real", "/mnt/v"), PodMount(f"{base}/file", "/mnt/v/sub")),
    )
    seen = survey(wanted, True, lambda path: path, 0)
    assert seen.resolved[f"{base}/link/new/f"] == f"{base}/real/new/f"
    assert seen.kinds[f"{base}/real"] == "dir"
    assert seen.kinds[f"{base}/file"] == "file"
    assert seen.kinds[f"{base}/real/sub"] == "dir"
    assert f"{base}/real/new" not in seen.kinds
    assert seen.kinds["/"] == "dir"


def test_link_below_tmp_leads_to_what_is_shown() -> None:
    """L-8: the way to a home may go by links, and each pod has a /tmp of its own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        base = Path(made).resolve()
        (base / "real" / "home").mkdir(parents=True)
        (base / "one").symlink_to("two")
        (base / "two").symlink_to(base / "real")
        (base / "real" / "inner").symlink_to("home")
        wanted = Wanted(shared=(f"{base}/one/inner", f"{base}/real", f"{base}/gone"))
        seen = plan(wanted, survey(wanted, True, lambda path: path, 0))
    found = {op.target: op for op in seen}
    assert found[f"{base}/real"] == Bind(f"{base}/real", f"{base}/real")
    assert f"{base}/gone" not in found
    links = {item.path: item.link for item in layer(found["/tmp"]).values() if item.link}
    assert links == {f"{base.name}/one": "two", f"{base.name}/two": f"{base}/real"}


SYSTEM_PATHS = st.lists(
    st.sampled_from(["a", "b", "ssh", "etc", "opt", "tmp", "run", "x"]), min_size=1, max_size=4
).map(lambda parts: "/" + "/".join(parts))


@given(st.lists(SYSTEM_PATHS, max_size=6), st.lists(SYSTEM_PATHS, max_size=4))
def test_every_target_exists_on_the_host_or_in_an_earlier_private_layer(
    mounts: list[str], files: list[str]
) -> None:
    wanted = Wanted(
        mounts=tuple(PodMount(None, path) for path in mounts),
        files=tuple(PodFile(path, 0o600, b"") for path in files if path not in mounts),
        share_source="/scratch/share",
    )
    facts = FACTS
    try:
        made = plan(wanted, facts)
    except MountPathError:
        return
    existing = set(facts.kinds)
    for op in made:
        assert op.target in existing or op.target == "/"
        if isinstance(op, Tmpfs):
            existing = {p for p in existing if not below(p, op.target)} | {op.target}
        if isinstance(op, Tmpfs | Cover):
            for item in op.made:
                existing.add(f"{op.target.rstrip('/')}/{item.path}")
    assert all(path in existing for path in (*mounts, *files))
