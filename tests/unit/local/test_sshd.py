"""The texts of a pod's SSH files, read by the programs that they are for."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from mpi_trainer.local import sshd
from mpi_trainer.runtime import sshkeys

WORKERS = (
    sshd.Endpoint(("w-0", "w-0.job.ns.svc"), "127.0.0.3", 2222, "ecdsa-sha2-nistp521 AAA0"),
    sshd.Endpoint(("w-1", "w-1.job.ns.svc"), "127.0.0.4", 2223, "ecdsa-sha2-nistp521 AAA1"),
)
HARD = (
    ("PLAIN", "word"),
    ("EMPTY", ""),
    ("QUOTES", """it's "quoted" ''"""),
    ("NEWLINES", "one\ntwo\n\n"),
    ("DOLLAR", "$HOME $(id) ${X} `id` $$"),
    ("BACKSLASHES", "a\\nb\\\\c\\"),
    ("BLANKS", "  a \t b  "),
    ("GLOB", "*?[a]~!#;&|<>"),
    ("UNICODE", "héllo ☃"),
    ("DASH", "-n -e"),
)


def environment_of(script: str, *, command: str = "") -> dict[str, str]:
    """The variables that a real /bin/sh passes on after it ran the script."""
    env = {"SSH_ORIGINAL_COMMAND": command}
    run = subprocess.run(["/bin/sh", "-c", script], env=env, capture_output=True, check=True)
    pairs = (pair.partition("=") for pair in run.stdout.decode().split("\0") if pair)
    return {name: value for name, _, value in pairs}


def test_every_value_comes_back_exactly_from_a_real_shell(tmp_path: Path) -> None:
    file = tmp_path / "it's an env"
    file.write_text(sshd.env_file(HARD))
    env_program = shutil.which("env")
    session = sshd.session_script(str(file))
    seen = environment_of(session, command=f"exec {env_program} -0")
    assert {name: seen.get(name) for name, _ in HARD} == dict(HARD)


def test_a_session_runs_the_command_as_it_came_and_passes_on_its_status(tmp_path: Path) -> None:
    file = tmp_path / "env"
    file.write_text(sshd.env_file((("A", "1"),)))
    script = tmp_path / "session"
    script.write_text(sshd.session_script(str(file)))
    script.chmod(0o700)
    env = {"SSH_ORIGINAL_COMMAND": """printf '%s|' "a  b" 'c"d' "$A"; exit 7"""}
    run = subprocess.run([script], env=env, capture_output=True, check=False)
    assert (run.stdout, run.returncode) == (b'a  b|c"d|1|', 7)


def test_an_empty_environment_is_an_empty_file() -> None:
    assert sshd.env_file(()) == ""


def test_known_hosts_has_each_worker_under_its_alias() -> None:
    assert sshd.known_hosts(WORKERS) == (
        "w-0 ecdsa-sha2-nistp521 AAA0\nw-1 ecdsa-sha2-nistp521 AAA1\n"
    )


def resolved(config: Path, host: str) -> dict[str, str]:
    """What OpenSSH's own client makes of the file."""
    run = subprocess.run(
        ["ssh", "-G", "-F", config, host], capture_output=True, check=True, text=True
    )
    return dict(line.split(" ", 1) for line in run.stdout.splitlines() if " " in line)


@pytest.mark.skipif(shutil.which("ssh") is None, reason="needs OpenSSH's client")
@pytest.mark.parametrize("name", ["w-1", "w-1.job.ns.svc"])
def test_the_client_finds_a_worker_by_either_name_and_is_strict(tmp_path: Path, name: str) -> None:
    """AC-19: no host is trusted that the job did not make."""
    config = tmp_path / "config"
    config.write_text(sshd.client_config("/run/ssh", "me", WORKERS))
    seen = resolved(config, name)
    assert (seen["hostname"], seen["port"], seen["user"]) == ("127.0.0.4", "2223", "me")
    assert seen["hostkeyalias"] == "w-1"
    assert seen["stricthostkeychecking"] in ("true", "yes")
    assert (seen["userknownhostsfile"], seen["batchmode"]) == ("/run/ssh/known_hosts", "yes")
    assert seen["identityfile"] == "/run/ssh/id"


@pytest.mark.skipif(shutil.which("ssh") is None, reason="needs OpenSSH's client")
def test_a_host_that_is_no_worker_is_strict_too(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(sshd.client_config("/run/ssh", "me", ()))
    assert resolved(config, "elsewhere")["stricthostkeychecking"] in ("true", "yes")


@pytest.mark.skipif(sshd.find_sshd() is None, reason="needs sshd")
def test_sshd_accepts_its_configuration_and_admits_keys_alone(tmp_path: Path) -> None:
    key = tmp_path / "host_key"
    key.touch(0o600)
    key.write_bytes(sshkeys.generate().private)
    config = tmp_path / "sshd_config"
    config.write_text(sshd.server_config(str(tmp_path), "127.0.0.3", 2222))
    program = sshd.find_sshd()
    assert program is not None
    run = subprocess.run(
        [program, "-T", "-f", config],
        capture_output=True,
        check=False,
        text=True,
        env={"PATH": os.environ["PATH"]},
    )
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert "listenaddress 127.0.0.3:2222" in lines
    assert f"forcecommand {tmp_path}/session" in lines
    assert f"authorizedkeysfile {tmp_path}/authorized_keys" in lines
    for refused in ("passwordauthentication", "kbdinteractiveauthentication", "permittty"):
        assert f"{refused} no" in lines
