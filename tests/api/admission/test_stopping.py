"""A replica that gets SIGTERM serves on, and sends its callers elsewhere (CTL-4)."""

from __future__ import annotations

import http.client
import json
import signal
import ssl
from pathlib import Path

from tests.api.admission.cases import job
from tests.api.admission.serving import Server, start
from tests.api.running import free_port
from tests.cluster import eventually
from tools.cluster.spec import Spec

PORT = free_port()


def asked(connection: http.client.HTTPSConnection) -> http.client.HTTPResponse:
    request = {"uid": "1", "operation": "CREATE", "namespace": "a", "object": job("a")}
    connection.request("POST", "/mutate-mpijob", json.dumps({"request": request}))
    answer = connection.getresponse()
    assert json.load(answer)["response"]["allowed"]
    return answer


def test_an_open_connection_is_answered_once_more_and_told_to_go(
    webhook: Server, api_server: Spec, tmp_path: Path
) -> None:
    leaving = start(api_server, tmp_path, PORT, "--grace-seconds=3")
    try:
        eventually("the webhook is ready", leaving.ready)
        trust = (
            ssl._create_unverified_context()
        )  # it is this machine's own, and asked for no secret
        connection = http.client.HTTPSConnection("localhost", PORT, timeout=10, context=trust)
        assert asked(connection).getheader("Connection") is None
        leaving.process.send_signal(signal.SIGTERM)
        eventually("it has heard the signal", lambda: not leaving.ready())
        assert asked(connection).getheader("Connection") == "close"
        connection.close()
    finally:
        leaving.stop()
