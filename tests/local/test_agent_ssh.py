"""What the agent prepares for SSH, read by the programs that it is for: a shell, ssh and sshd."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpi_trainer.layout.agent import scripts
from mpi_trainer.local.pods import sshd
from mpi_trainer.runtime import key_pairs
from mpi_trainer.runtime.key_pairs import KeyPair, KeyType
from tests.api.running import free_port
from tests.local.agentnames import assigned

SHELLS = [s for s in (["dash"], ["busybox", "sh"], ["bash", "--posix"]) if shutil.which(s[0])]
# What FIPS 140-3 approves, by the names that OpenSSH has for it; nothing else may be agreed upon.
APPROVED = {
    "algorithm": {f"ecdh-sha2-nistp{size}" for size in (256, 384, 521)},
    "host key algorithm": {
        *(f"ecdsa-sha2-nistp{size}" for size in (256, 384, 521)),
        *("rsa-sha2-256", "rsa-sha2-512"),
    },
    "cipher": {
        *("aes128-gcm@openssh.com", "aes256-gcm@openssh.com"),
        *("aes128-ctr", "aes256-ctr"),
    },
    "MAC": {
        "<implicit>",  # GCM has its own
        *(f"hmac-sha2-{size}{end}" for size in (256, 512) for end in ("", "-etm@openssh.com")),
    },
}
NOT_APPROVED = (
    ("KexAlgorithms=curve25519-sha256", "key exchange method"),
    ("Ciphers=chacha20-poly1305@openssh.com", "cipher"),
    ("HostKeyAlgorithms=ssh-ed25519", "host key type"),
)
HARD = {
    "PLAIN": "word",
    "EMPTY": "",
    "QUOTES": """it's "quoted" ''""",
    "NEWLINES": "one\ntwo\n\n",
    "DOLLAR": "$HOME $(id) ${X} `id` $$",
    "BACKSLASHES": "a\\nb\\\\c\\",
    "BLANKS": "  a \t b  ",
    "GLOB": "*?[a]~!#;&|<>",
    "UNICODE": "héllo ☃",
    "DASH": "-n -e",
}


@pytest.fixture(params=SHELLS, ids=lambda shell: str(shell[0]))
def shell(request: pytest.FixtureRequest) -> list[str]:
    found: list[str] = request.param
    return found


@pytest.fixture(scope="module")
def pairs() -> tuple[KeyPair, KeyPair]:
    return key_pairs.generate_ssh(), key_pairs.generate_ssh()


class Pod:
    """The agent's files, keys and scratch of one pod, in a folder."""

    def __init__(self, place: Path, role: str, pairs: tuple[KeyPair, KeyPair]) -> None:
        self.agent, self.scratch = place / "agent", place / "scratch"
        keys = place / "keys"
        for folder in (self.agent, self.scratch, keys):
            folder.mkdir()
        for file in scripts.files("launcher" if role == "launcher" else "worker", ""):
            path = self.agent / Path(file.path).name
            path.write_text(file.text)
            path.chmod(file.mode)
        (self.agent / "hosts").write_text("w-0 w-0.job.ns.svc\nw-1 w-1.job.ns.svc 127.0.0.4 2223\n")
        job, host = pairs
        (keys / "private").write_bytes(job.private)
        (keys / "public").write_text(f"{job.public}\n")
        (keys / "host-private").write_bytes(host.private)
        (keys / "host-public").write_text(f"{host.public}\n")
        self.env = {
            "PATH": os.environ["PATH"],
            "MPI_TRAINER_SCRATCH": str(self.scratch),
            "MPI_TRAINER_KEYS": str(keys),
        }
        self.role = role

    def prepare(self, shell: list[str], **env: str) -> subprocess.CompletedProcess[str]:
        command = [*shell, str(self.agent / "prepare"), self.role]
        return subprocess.run(
            command, env={**self.env, **env}, capture_output=True, check=False, text=True
        )


def resolved(config: Path, host: str) -> dict[str, str]:
    """What OpenSSH's own client makes of the file."""
    run = subprocess.run(
        ["ssh", "-G", "-F", config, host], capture_output=True, check=True, text=True
    )
    return dict(line.split(" ", 1) for line in run.stdout.splitlines() if " " in line)


@pytest.mark.parametrize("name", ["w-1", "w-1.job.ns.svc"])
def test_the_client_finds_a_worker_by_either_name_and_is_strict(
    shell: list[str], tmp_path: Path, pairs: tuple[KeyPair, KeyPair], name: str
) -> None:
    """AC-19: no host is trusted that the job did not make."""
    pod = Pod(tmp_path, "launcher", pairs)
    assert pod.prepare(shell).returncode == 0
    seen = resolved(pod.scratch / "ssh" / "config", name)
    assert (seen["hostname"], seen["port"], seen["user"]) == ("127.0.0.4", "2223", "mpi")
    assert seen["stricthostkeychecking"] in ("true", "yes")
    assert (pod.scratch / "ssh" / "known_hosts").read_text() == f"mpi-workers {pairs[1].public}\n"
    assert (seen["hostkeyalias"], seen["batchmode"]) == ("mpi-workers", "yes")


def test_a_host_that_is_no_worker_is_not_given_the_jobs_key(
    shell: list[str], tmp_path: Path, pairs: tuple[KeyPair, KeyPair]
) -> None:
    pod = Pod(tmp_path, "launcher", pairs)
    pod.prepare(shell)
    seen = resolved(pod.scratch / "ssh" / "config", "elsewhere")
    assert str(pod.scratch) not in "".join(seen.values())


@pytest.mark.parametrize(("host", "strict"), [("w-1", True), ("elsewhere", False)])
def test_an_ssh_that_asks_for_less_is_strict_with_the_jobs_hosts_alone(
    shell: list[str], tmp_path: Path, pairs: tuple[KeyPair, KeyPair], host: str, strict: bool
) -> None:
    """AC-19: horovodrun asks for no host key checking."""
    pod = Pod(tmp_path, "launcher", pairs)
    pod.prepare(shell)
    shim = pod.scratch / "bin" / "ssh"
    env = {**pod.env, "PATH": f"{shim.parent}:{pod.env['PATH']}"}
    words = ["-G", "-o", "StrictHostKeyChecking=no", host]
    run = subprocess.run([*shell, shim, *words], capture_output=True, text=True, env=env)
    assert run.returncode == 0, run.stderr
    seen = dict(line.split(" ", 1) for line in run.stdout.splitlines() if " " in line)
    assert (seen["stricthostkeychecking"] in ("true", "yes")) is strict
    assert (str(pod.scratch) in seen["identityfile"]) is strict


def test_private_keys_are_copied_for_this_user_alone(
    shell: list[str], tmp_path: Path, pairs: tuple[KeyPair, KeyPair]
) -> None:
    """AC-19: a key that others can read is refused by ssh."""
    pod = Pod(tmp_path, "launcher", pairs)
    pod.prepare(shell)
    key = pod.scratch / "ssh" / "id"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert key.read_bytes() == pairs[0].private


@pytest.mark.skipif(sshd.find_sshd() is None, reason="needs sshd")
def test_sshd_accepts_its_configuration_and_admits_keys_alone(
    shell: list[str], tmp_path: Path, pairs: tuple[KeyPair, KeyPair]
) -> None:
    """OPS-1: nothing is negotiated that FIPS does not approve."""
    pod = Pod(tmp_path, "worker", pairs)
    pod.prepare(shell, MPI_TRAINER_SSH_ADDRESS="127.0.0.3")
    program = sshd.find_sshd()
    assert program is not None
    config = pod.scratch / "ssh" / "sshd_config"
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # as a worker does for root's sshd
    run = subprocess.run(
        [program, "-T", "-f", config], capture_output=True, check=False, text=True, env=pod.env
    )
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert "listenaddress 127.0.0.3:2222" in lines
    for refused in ("passwordauthentication", "permittty", "usepam"):
        assert f"{refused} no" in lines
    for line in lines:
        assert not line.startswith(("kex", "ciphers", "macs")) or not any(
            word in line for word in ("curve25519", "chacha", "sntrup", "sha1", "umac", "md5")
        ), line


@pytest.mark.skipif(sshd.find_sshd() is None, reason="needs sshd")
@pytest.mark.parametrize("kind", [key_pairs.ECDSA, key_pairs.RSA])
def test_a_worker_is_reached_with_keys_of_either_kind(kind: KeyType, tmp_path: Path) -> None:
    """AC-19: by the client's and the server's own configuration, on one machine. OPS-1: what they
    agree upon is approved by FIPS, and who offers nothing of that is refused."""
    made = key_pairs.generate_ssh(kind), key_pairs.generate_ssh(kind)
    for folder in ("worker", "launcher"):
        (tmp_path / folder).mkdir()
    port, user = str(free_port()), pwd.getpwuid(os.geteuid()).pw_name
    worker = Pod(tmp_path / "worker", "worker", made)
    launcher = Pod(tmp_path / "launcher", "launcher", made)
    (launcher.agent / "hosts").write_text(f"w-0 w-0.job.ns.svc 127.0.0.1 {port}\n")
    shell = ["sh"]
    address = {"MPI_TRAINER_SSH_ADDRESS": "127.0.0.1", "MPI_TRAINER_SSH_PORT": port}
    assert worker.prepare(shell, **address).returncode == 0
    assert launcher.prepare(shell, MPI_TRAINER_SSH_USER=user).returncode == 0
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    serving = [str(sshd.find_sshd()), "-D", "-e", "-f", str(worker.scratch / "ssh/sshd_config")]
    with subprocess.Popen(serving, stderr=subprocess.PIPE, env=worker.env) as server:
        try:
            assert server.stderr is not None
            assert b"listening" in server.stderr.readline()
            asked = ["ssh", "-v", "-F", str(launcher.scratch / "ssh/config"), "w-0", "echo there"]
            ended = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
            assert (ended.returncode, ended.stdout) == (0, "there\n"), ended.stderr
            found = agreed(ended.stderr)
            assert {name for name, _ in found} == {*APPROVED}
            assert [(name, word) for name, word in found if word not in APPROVED[name]] == []
            for option, what in NOT_APPROVED:
                alone = ["ssh", "-F", "none", "-o", option, "-p", port, "127.0.0.1", "true"]
                refused = subprocess.run(alone, capture_output=True, text=True, timeout=60)
                assert f"no matching {what} found" in refused.stderr, refused.stderr
        finally:
            server.terminate()


def agreed(said: str) -> list[tuple[str, str]]:
    """What client and server chose, out of what `ssh -v` says."""
    lines = [line for line in said.splitlines() if "kex: " in line and "server_sig" not in line]
    return re.findall(r"(host key algorithm|algorithm|cipher|MAC): (\S+)", "\n".join(lines))


def test_the_passwd_file_names_this_user_first_and_keeps_the_rest(
    shell: list[str], tmp_path: Path, pairs: tuple[KeyPair, KeyPair]
) -> None:
    pod = Pod(tmp_path, "worker", pairs)
    pod.prepare(shell, HOME=str(tmp_path))
    lines = (pod.scratch / "passwd").read_text().splitlines()
    own = [line for line in lines if line.split(":")[2] == str(os.getuid())]
    assert all(line.endswith(f":{tmp_path}:/bin/sh") for line in own)
    assert own[-1].startswith("mpi:*:")
    assert lines[: len(own)] == own
    original = Path("/etc/passwd").read_text().splitlines()
    others = [line for line in original if line.split(":")[2] != str(os.getuid())]
    assert [line for line in lines if line in others] == others


@pytest.mark.parametrize("home", ["/", "/nonexistent", ""])
def test_a_home_that_cannot_be_written_is_replaced(
    shell: list[str], tmp_path: Path, pairs: tuple[KeyPair, KeyPair], home: str
) -> None:
    pod = Pod(tmp_path, "worker", pairs)
    pod.prepare(shell, HOME=home)
    assert f":{pod.scratch}/home:/bin/sh" in (pod.scratch / "passwd").read_text()
    assert (pod.scratch / "home").is_dir()


def test_an_unreadable_key_is_named(
    shell: list[str], tmp_path: Path, pairs: tuple[KeyPair, KeyPair]
) -> None:
    pod = Pod(tmp_path, "worker", pairs)
    done = pod.prepare(shell, MPI_TRAINER_KEYS="/nonexistent")
    assert done.returncode == 102
    assert "/nonexistent/host-private" in done.stderr


def session(shell: list[str], pod: Pod, command: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*shell, str(pod.agent / "session"), str(pod.scratch)],
        env={"PATH": os.environ["PATH"], "SSH_ORIGINAL_COMMAND": command},
        capture_output=True,
        check=False,
    )


def dump(shell: list[str], pod: Pod, env: Mapping[str, str]) -> None:
    """The file that a worker writes, by the worker's own words."""
    text = (pod.agent / "worker").read_text()
    words = text[: text.index("umask 022")]
    (pod.scratch / "prepared").touch()
    env = {**pod.env, "MPI_TRAINER_SSHD": "/bin/true", **env}
    subprocess.run([*shell, "-c", words, str(pod.agent / "worker")], env=env, check=True)


def test_every_variable_of_the_container_reaches_a_session_exactly(
    shell: list[str], tmp_path: Path, pairs: tuple[KeyPair, KeyPair]
) -> None:
    """CTL-14"""
    pod = Pod(tmp_path, "worker", pairs)
    own = dict.fromkeys(assigned("worker", "processes", "session"), "the job's own")
    wanted = {**own, **HARD}
    dump(shell, pod, {**wanted, "not.a.name": "x"})
    assert stat.S_IMODE((pod.scratch / "env").stat().st_mode) == 0o600
    output = session(shell, pod, "exec env -0").stdout.decode()
    seen = dict(pair.split("=", 1) for pair in output.split("\0") if pair)
    assert {name: seen.get(name) for name in wanted} == wanted


def test_a_session_runs_the_command_as_it_came_and_passes_on_its_status(
    shell: list[str], tmp_path: Path, pairs: tuple[KeyPair, KeyPair]
) -> None:
    pod = Pod(tmp_path, "worker", pairs)
    dump(shell, pod, {"A": "1"})
    run = session(shell, pod, """printf '%s|' "a  b" 'c"d' "$A"; exit 7""")
    assert (run.stdout, run.returncode) == (b'a  b|c"d|1|', 7)


@pytest.mark.parametrize(
    ("called_back", "asked", "given"),
    [
        pytest.param(
            "--control-port train-launcher:4000 --rank 1",
            3,
            "--control-port 10.1.2.3:4000 --rank 1",
            id="mpich",
        ),
        pytest.param(
            "--upstream-host train-launcher --upstream-port 4000",
            3,
            "--upstream-host 10.1.2.3 --upstream-port 4000",
            id="intel",
        ),
        pytest.param(
            "--control-port 10.9.9.9:4000", 0, "--control-port 10.9.9.9:4000", id="an-address"
        ),
        pytest.param(
            "--control-port '$(touch):4000'", 0, "--control-port $(touch):4000", id="no-name"
        ),
        pytest.param("--version", 0, "--version", id="nobody"),
    ],
)
def test_a_proxy_starts_when_the_launchers_name_is_known_and_need_not_ask_again(
    shell: list[str],
    tmp_path: Path,
    pairs: tuple[KeyPair, KeyPair],
    called_back: str,
    asked: int,
    given: str,
) -> None:
    """CTL-2: a proxy that cannot find the launcher ends the job. A pod's name comes late, and to
    one DNS server before the other."""
    pod = Pod(tmp_path, "worker", pairs)
    (pod.scratch / "ranks").mkdir(exist_ok=True)
    tools = tmp_path / "bin"
    tools.mkdir()
    known = f'[ "$(wc -l <{tmp_path}/asked)" -ge 3 ] && echo "10.1.2.3        train-launcher"'
    for name, script in (
        ("getent", f'echo "$*" >>{tmp_path}/asked; {known}'),
        ("sleep", ":"),
        ("hydra_pmi_proxy", f'echo "run $*" >>{tmp_path}/asked; echo "$launcher, $left"; exit 5'),
    ):
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    own = dict.fromkeys(("launcher", "left", "found", "option"), "the job's own")
    dump(shell, pod, {**own, "PATH": f"{tools}:{os.environ['PATH']}"})
    done = session(shell, pod, f"hydra_pmi_proxy {called_back}")
    assert (done.returncode, done.stdout) == (5, b"the job's own, the job's own\n")
    told = (tmp_path / "asked").read_text().splitlines()
    assert told == ["hosts train-launcher"] * asked + [f"run {given}"]


def test_a_worker_without_sshd_says_which_package_is_missing(
    shell: list[str], tmp_path: Path, pairs: tuple[KeyPair, KeyPair]
) -> None:
    pod = Pod(tmp_path, "worker", pairs)
    script = pod.agent / "worker"
    script.chmod(0o755)
    script.write_text(script.read_text().replace("/usr/sbin/sshd", "/nonexistent/sshd"))
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("dirname", "id", "mkdir", "cat", "chmod", "mv", "ln", "grep", "sleep"):
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    program = shutil.which(shell[0])
    assert program is not None
    run = subprocess.run(
        [program, *shell[1:], str(script)],
        env={**pod.env, "PATH": str(tools)},
        capture_output=True,
        check=False,
        text=True,
    )
    assert run.returncode == 100, run.stderr
    assert "openssh-server" in run.stderr
