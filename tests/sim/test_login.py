"""From a kubeconfig on disk to a request that a TLS server takes: every way to log in."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mpi_trainer.kube import credentials, requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.config import Config, in_cluster, load
from mpi_trainer.kube.errors import ConfigError, NotFound, Unauthorized, Unreachable
from mpi_trainer.kube.resources import CONFIGMAPS
from tests.sim.certificates import Authority, Pair, serving
from tests.sim.faults import Fault
from tests.sim.proxy import Proxy
from tests.sim.server import Server

ASK = msgspec.structs.replace(requests.get(CONFIGMAPS, "n", "none"), tries=1)
AUTHORITY = Authority()
SERVER = AUTHORITY.pair("server", "127.0.0.1", "inside.example")


def kubeconfig(folder: Path, cluster: dict[str, Any], user: dict[str, Any]) -> Path:
    path = folder / "config"
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "ns"}}],
        "clusters": [{"name": "k", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(json.dumps(document))
    return path


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


TRUSTED = {"certificate-authority-data": b64(AUTHORITY.certificate)}


def play(
    folder: Path,
    script: Callable[[Server], Awaitable[None]],
    *faults: Fault,
    clients: Authority | None = None,
) -> None:
    """Run a script with a server that speaks TLS."""

    async def run() -> None:
        async with asyncio.timeout(20):
            async with Server(faults, tls=serving(SERVER, folder, clients)) as server:
                await script(server)

    asyncio.run(run())


async def arrives(config: Config, server: Server) -> dict[str, str]:
    """Ask for something that is not there; the headers with which the question arrived."""
    async with Client(config) as client:
        with pytest.raises(NotFound):
            await client.call(ASK)
    return server.requests[-1].headers


def plugin(folder: Path, *answers: dict[str, Any], version: str = "v1") -> dict[str, Any]:
    """A program that gives these answers in turn and notes what it was told."""
    api = f"client.authentication.k8s.io/{version}"
    printed = [{"apiVersion": api, "kind": "ExecCredential", "status": one} for one in answers]
    (folder / "answers.json").write_text(json.dumps(printed))
    program = folder / "plugin.py"
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, os, pathlib, sys\n"
        "here = pathlib.Path(__file__).parent\n"
        "log = here / 'log'\n"
        "count = len(log.read_text().splitlines()) if log.exists() else 0\n"
        "answers = json.loads((here / 'answers.json').read_text())\n"
        "told = {'info': json.loads(os.environ['KUBERNETES_EXEC_INFO']), 'args': sys.argv[1:],\n"
        "        'own': os.environ.get('OWN')}\n"
        "log.open('a').write(json.dumps(told) + '\\n')\n"
        "print(json.dumps(answers[min(count, len(answers) - 1)]))\n"
    )
    program.chmod(0o755)
    return {
        "exec": {
            "apiVersion": api,
            "command": "./plugin.py",
            "args": ["get", "a b; c"],
            "env": [{"name": "OWN", "value": "mine"}],
            "interactiveMode": "Never",
            "provideClusterInfo": True,
        }
    }


def runs(folder: Path) -> list[Any]:
    return [json.loads(line) for line in (folder / "log").read_text().splitlines()]


def test_a_token_goes_with_every_request(tmp_path: Path) -> None:
    async def script(server: Server) -> None:
        path = kubeconfig(tmp_path, {"server": server.url, **TRUSTED}, {"token": "s3cret"})
        config = load(path)
        headers = await arrives(config, server)
        assert headers["Authorization"] == "Bearer s3cret"
        assert config.namespace == "ns"
        assert "s3cret" not in repr(config) + repr(config.credentials)

    play(tmp_path, script)


def test_a_name_and_password_are_sent_as_kubectl_does(tmp_path: Path) -> None:
    async def script(server: Server) -> None:
        user = {"username": "me", "password": "pass"}
        path = kubeconfig(tmp_path, {"server": server.url, **TRUSTED}, user)
        headers = await arrives(load(path), server)
        assert headers["Authorization"] == "Basic " + b64(b"me:pass")

    play(tmp_path, script)


def test_a_server_of_an_unknown_authority_is_refused_before_anything_is_sent(
    tmp_path: Path,
) -> None:
    async def script(server: Server) -> None:
        other = {"certificate-authority-data": b64(Authority("other").certificate)}
        for cluster in (other, {}):
            path = kubeconfig(tmp_path, {"server": server.url, **cluster}, {"token": "s3cret"})
            async with Client(load(path)) as client:
                with pytest.raises(Unreachable, match="do not trust") as caught:
                    await client.call(ASK)
            assert (caught.value.what, caught.value.sent) == ("tls", False)
        assert not server.requests

    play(tmp_path, script)


def test_a_server_of_another_name_is_refused_unless_that_name_is_expected(tmp_path: Path) -> None:
    async def script(server: Server) -> None:
        url = server.url.replace("127.0.0.1", "localhost")
        path = kubeconfig(tmp_path, {"server": url, **TRUSTED}, {})
        async with Client(load(path)) as client:
            with pytest.raises(Unreachable, match="do not trust"):
                await client.call(ASK)
        named = {"server": url, "tls-server-name": "inside.example", **TRUSTED}
        await arrives(load(kubeconfig(tmp_path, named, {})), server)

    play(tmp_path, script)


def test_insecure_is_honoured_when_the_file_says_so(tmp_path: Path) -> None:
    async def script(server: Server) -> None:
        cluster = {"server": server.url, "insecure-skip-tls-verify": True}
        await arrives(load(kubeconfig(tmp_path, cluster, {"token": "t"})), server)
        path = kubeconfig(tmp_path, {**cluster, **TRUSTED}, {})
        with pytest.raises(ConfigError, match="contradict"):
            load(path)

    play(tmp_path, script)


@pytest.mark.parametrize("inline", [True, False])
def test_a_client_certificate_is_shown(tmp_path: Path, inline: bool) -> None:
    people = Authority("people")
    pair = people.pair("me")

    async def script(server: Server) -> None:
        (tmp_path / "me.crt").write_bytes(pair.certificate)
        (tmp_path / "me.key").write_bytes(pair.key)
        user = (
            {"client-certificate-data": b64(pair.certificate), "client-key-data": b64(pair.key)}
            if inline
            else {"client-certificate": "me.crt", "client-key": "me.key"}
        )
        cluster = {"server": server.url, **TRUSTED}
        config = load(kubeconfig(tmp_path, cluster, user))
        await arrives(config, server)
        assert "PRIVATE" not in repr(config) + repr(config.trust)
        async with Client(load(kubeconfig(tmp_path, cluster, {}))) as client:
            with pytest.raises(Unreachable):
                await client.call(ASK)

    play(tmp_path, script, clients=people)


def test_a_token_file_that_turned_is_read_again_after_a_refusal(tmp_path: Path) -> None:
    async def script(server: Server) -> None:
        token = tmp_path / "token"
        token.write_text("old\n")
        path = kubeconfig(tmp_path, {"server": server.url, **TRUSTED}, {"tokenFile": "token"})
        async with Client(load(path)) as client:
            with pytest.raises(NotFound):
                await client.call(ASK)
            token.write_text("new\n")
            server.faults.append(Fault("answer", code=401, reason="Unauthorized"))
            with pytest.raises(NotFound):
                await client.call(ASK)
            server.faults.append(Fault("answer", code=401, reason="Unauthorized"))
            with pytest.raises(Unauthorized, match="log in again"):
                await client.call(ASK)
        sent = [one.headers["Authorization"] for one in server.requests]
        assert sent == ["Bearer old", "Bearer old", "Bearer new", "Bearer new"]

    play(tmp_path, script)


def test_a_token_file_is_read_again_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "FRESH", 0.0)
    token = tmp_path / "token"
    token.write_text("old")
    source = credentials.TokenFile(token)
    first, token_2 = source.ready(), token.write_text("new")
    second = source.ready()
    token.unlink()
    third = source.ready()
    assert token_2
    assert first and second and third
    assert [one.authorization for one in (first, second, third)] == [
        "Bearer old",
        "Bearer new",
        "Bearer new",
    ]


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_plugin_gives_a_token_and_is_asked_once(tmp_path: Path, version: str) -> None:
    async def script(server: Server) -> None:
        user = plugin(tmp_path, {"token": "s3cret"}, version=version)
        path = kubeconfig(tmp_path, {"server": server.url, **TRUSTED}, user)
        async with Client(load(path)) as client:
            asked = (client.call(ASK) for _ in range(5))
            answers = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(one, NotFound) for one in answers)
        assert {one.headers["Authorization"] for one in server.requests} == {"Bearer s3cret"}
        (told,) = runs(tmp_path)
        assert (told["args"], told["own"]) == (["get", "a b; c"], "mine")
        assert told["info"]["spec"]["interactive"] is False
        assert told["info"]["spec"]["cluster"] == {"server": server.url, **TRUSTED}

    play(tmp_path, script)


def test_a_plugins_credential_is_renewed_when_expired_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mpi_trainer.kube.plugins._TOO_SOON", 0.0)
    answers = (
        {"token": "first", "expirationTimestamp": "2020-01-01T00:00:00Z"},
        {"token": "second", "expirationTimestamp": "2099-01-01T00:00:00Z"},
        {"token": "third"},
    )

    async def script(server: Server) -> None:
        user = plugin(tmp_path, *answers)
        path = kubeconfig(tmp_path, {"server": server.url, **TRUSTED}, user)
        async with Client(load(path)) as client:
            for _ in range(3):
                with pytest.raises(NotFound):
                    await client.call(ASK)
            server.faults.append(Fault("answer", code=401, reason="Unauthorized"))
            with pytest.raises(NotFound):
                await client.call(ASK)
        sent = [one.headers["Authorization"].split()[1] for one in server.requests]
        assert sent == ["first", "second", "second", "second", "third"]

    play(tmp_path, script)


def test_a_plugin_gives_a_certificate(tmp_path: Path) -> None:
    people = Authority("people")

    def given(pair: Pair) -> dict[str, str]:
        return {
            "clientCertificateData": pair.certificate.decode(),
            "clientKeyData": pair.key.decode(),
        }

    async def script(server: Server) -> None:
        user = plugin(tmp_path, given(people.pair("me")))
        path = kubeconfig(tmp_path, {"server": server.url, **TRUSTED}, user)
        await arrives(load(path), server)

    play(tmp_path, script, clients=people)


def test_acting_as_somebody_else_names_all_groups(tmp_path: Path) -> None:
    async def script(server: Server) -> None:
        user = {"token": "t", "as": "ann", "as-groups": ["a", "b"], "as-user-extra": {"k/1": ["x"]}}
        path = kubeconfig(tmp_path, {"server": server.url, **TRUSTED}, user)
        assert load(path).impersonation == (
            ("Impersonate-User", "ann"),
            ("Impersonate-Group", "a"),
            ("Impersonate-Group", "b"),
            ("Impersonate-Extra-k%2F1", "x"),
        )
        headers = await arrives(load(path), server)
        assert headers["Impersonate-User"] == "ann"
        headers = await arrives(load(path, as_user="bob"), server)
        assert headers["Impersonate-User"] == "bob"
        assert "Impersonate-Group" not in headers

    play(tmp_path, script)


def test_a_proxy_is_asked_with_its_password_and_tls_goes_through_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(server: Server) -> None:
        port = server.url.rpartition(":")[2]
        cluster = {"server": f"https://inside.example:{port}", **TRUSTED}
        async with Proxy("Basic " + b64(b"me:pass")) as proxy:
            url = f"http://me:pass@127.0.0.1:{proxy.port}"
            config = load(kubeconfig(tmp_path, {**cluster, "proxy-url": url}, {"token": "t"}))
            assert "pass" not in repr(config)
            await arrives(config, server)
            monkeypatch.setenv("HTTPS_PROXY", url)
            await arrives(load(kubeconfig(tmp_path, cluster, {"token": "t"})), server)
            assert proxy.seen == [f"CONNECT inside.example:{port} HTTP/1.1"] * 2
            wrong = url.replace("pass", "wrong")
            config = load(kubeconfig(tmp_path, {**cluster, "proxy-url": wrong}, {}))
            async with Client(config) as client:
                with pytest.raises(Unreachable, match="the proxy refuses") as caught:
                    await client.call(ASK)
            assert "wrong" not in str(caught.value)

    play(tmp_path, script)


def test_inside_a_pod_the_account_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(server: Server) -> None:
        (tmp_path / "token").write_text("pod-token")
        (tmp_path / "ca.crt").write_bytes(AUTHORITY.certificate)
        (tmp_path / "namespace").write_text("mine")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", server.url.rpartition(":")[2])
        config = in_cluster(tmp_path)
        headers = await arrives(config, server)
        assert headers["Authorization"] == "Bearer pod-token"
        assert config.namespace == "mine"

    play(tmp_path, script)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_leaving_a_stream_closes_its_socket_even_if_the_server_has_stopped_listening(
    tmp_path: Path,
) -> None:
    """TLS says farewell and waits for the answer; a dead peer would keep the socket for long."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    writers = []

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writers.append(writer)
        writer.write(head + b"4\r\none\n\r\n")
        transport = writer.transport
        assert isinstance(transport, asyncio.ReadTransport)
        transport.pause_reading()

    async def run() -> None:
        server = await asyncio.start_server(mute, "127.0.0.1", 0, ssl=serving(SERVER, tmp_path))
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        config = load(kubeconfig(tmp_path, {"server": url, **TRUSTED}, {}))
        before = descriptors()
        async with Client(config) as client, aclosing(client.lines(ASK)) as lines:
            assert await anext(lines) == b"one"
        await asyncio.sleep(0.1)
        assert descriptors() == before + 1  # the server's end
        server.close()
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0)

    asyncio.run(run())


def test_a_request_that_was_cancelled_closes_its_socket_at_once(tmp_path: Path) -> None:
    """C-15: by what the HTTP library promises, not by its private members."""
    asked: asyncio.Future[asyncio.StreamWriter]

    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        transport = writer.transport
        assert isinstance(transport, asyncio.ReadTransport)
        transport.pause_reading()
        asked.set_result(writer)

    async def run() -> None:
        nonlocal asked
        asked = asyncio.get_running_loop().create_future()
        server = await asyncio.start_server(deaf, "127.0.0.1", 0, ssl=serving(SERVER, tmp_path))
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        config = load(kubeconfig(tmp_path, {"server": url, **TRUSTED}, {}))
        before = descriptors()
        async with Client(config) as client:
            call = asyncio.create_task(client.call(ASK))
            writer = await asked
            call.cancel()
            await asyncio.wait([call])
            await asyncio.sleep(0.1)
            assert descriptors() == before + 1  # the server's end
        server.close()
        writer.transport.abort()
        await asyncio.sleep(0)

    asyncio.run(run())


def test_a_renewed_client_certificate_is_used_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mpi_trainer.kube.trust._CHECK_SECONDS", 0.0)
    people = Authority("people")

    async def script(server: Server) -> None:
        files = tmp_path / "me.crt", tmp_path / "me.key"

        def write(pair: Pair) -> None:
            files[0].write_bytes(pair.certificate)
            files[1].write_bytes(pair.key)

        write(Authority("strangers").pair("me"))
        user = {"client-certificate": "me.crt", "client-key": "me.key"}
        path = kubeconfig(tmp_path, {"server": server.url, **TRUSTED}, user)
        async with Client(load(path)) as client:
            with pytest.raises(Unreachable):
                await client.call(ASK)
            write(people.pair("me"))
            with pytest.raises(NotFound):
                await client.call(ASK)

    play(tmp_path, script, clients=people)
