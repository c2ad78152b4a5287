"""The last words of attempts (W-7): of failed ranks too, without secrets, never waited for long."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from mpi_trainer.api import bounds
from mpi_trainer.api.kinds.pod_status import ContainerState, ContainerStatus, PodStatus, Running
from mpi_trainer.controller import log_tail, pod_logs
from mpi_trainer.controller.log_tail import Environment, LogSource, read_log, with_log_tails
from mpi_trainer.controller.objects import ContainerName, Pod, PodSpec
from mpi_trainer.controller.pod_logs import PodLogs, UnreadableLog
from mpi_trainer.decide.history import SUSPENDED, SWITCHED_OFF, Attempt, LogTail
from mpi_trainer.diagnose.finding import Facts
from mpi_trainer.kube import requests
from mpi_trainer.kube.errors import Status, from_status
from mpi_trainer.layout.agent.summary import parse
from mpi_trainer.runtime.partial import Meta

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
REQUEST = requests.logs("ns", "pi-launcher")


def pod(name: str = "pi-launcher", node: str = "n1", begun: bool = True) -> Pod:
    state = ContainerState(running=Running(NOW)) if begun else ContainerState()
    return Pod(
        metadata=Meta(name=name, namespace="ns", uid=name),
        spec=PodSpec(node_name=node, containers=(ContainerName("mpi"),)),
        status=PodStatus(
            phase="Running", container_statuses=(ContainerStatus("mpi", state=state),)
        ),
    )


def kept_lines(name: str, log: str, ranks: tuple[int, ...], environment: Environment) -> LogTail:
    return read_log(LogSource(pod(name), ranks=ranks), log, environment).tail


class Kubelet:
    """Answers with the last lines, and cuts the end off as a kubelet does."""

    def __init__(self, log: bytes = b"", wrong: Exception | None = None) -> None:
        self.log = log
        self.wrong = wrong
        self.asked: list[dict[str, str]] = []
        self.hangs = False

    async def fetch(self, request: requests.Request) -> bytes:
        query = dict(request.query)
        self.asked.append(query)
        if self.hangs:
            await asyncio.sleep(60)
        if self.wrong is not None:
            raise self.wrong
        lines = self.log.split(b"\n")[-int(query["tailLines"]) :]
        return b"\n".join(lines)[: int(query["limitBytes"])]


def logs(kubelet: Kubelet, clock: Any = lambda: 0.0) -> PodLogs:
    client: Any = kubelet
    return PodLogs(client, clock)


def refusal(code: int) -> Exception:
    return from_status(REQUEST, Status(code=code, reason="BadRequest", message="no"))


def test_log_is_asked_for_within_bounds() -> None:
    kubelet = Kubelet(b"a\nb")
    assert asyncio.run(logs(kubelet).end(pod())) == "a\nb"
    (query,) = kubelet.asked
    assert query["limitBytes"] == str(bounds.LOG_TAIL) and query["container"] == "mpi"


def test_long_lines_do_not_hide_the_last_one() -> None:
    """The kubelet counts bytes from the first of the last lines, and cuts off the end."""
    kubelet = Kubelet(b"\n".join([b"x" * 10_000] * 300 + [b"ValueError: the cause"]))
    said = asyncio.run(logs(kubelet).end(pod()))
    assert said.endswith("ValueError: the cause")
    assert len(kubelet.asked) == 3


@pytest.mark.parametrize(
    ("kubelet", "why"),
    [
        (Kubelet(wrong=refusal(404)), "its log was gone before it could be read"),
        (Kubelet(wrong=refusal(400)), "its log was gone before it could be read"),
        (
            Kubelet(b"unable to retrieve container logs for containerd://0af1"),
            "its log was gone before it could be read",
        ),
        (Kubelet(wrong=refusal(500)), "node n1 did not give its log"),
    ],
)
def test_log_that_cannot_be_had_says_why(kubelet: Kubelet, why: str) -> None:
    with pytest.raises(UnreadableLog, match=why):
        asyncio.run(logs(kubelet).end(pod()))


def test_container_that_never_began_is_not_asked() -> None:
    kubelet = Kubelet()
    with pytest.raises(UnreadableLog, match="had not started"):
        asyncio.run(logs(kubelet).end(pod(begun=False)))
    assert kubelet.asked == []


def test_silent_node_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundred jobs on a lost node only the first is held up."""
    monkeypatch.setattr(pod_logs, "SECONDS", 0.05)
    kubelet, time = Kubelet(b"a"), [0.0]
    kubelet.hangs = True
    reader = logs(kubelet, lambda: time[0])

    async def script() -> None:
        for _ in range(3):
            with pytest.raises(UnreadableLog, match="node n1"):
                await reader.end(pod())
        assert len(kubelet.asked) == 1
        kubelet.hangs = False
        assert await reader.end(pod(node="n2")) == "a"
        time[0] = pod_logs.SILENT
        assert await reader.end(pod()) == "a"

    asyncio.run(script())


def test_lost_node_with_many_jobs_holds_up_neither_calls_nor_other_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All of a client's calls were reads of one node's logs, and nodes that were not even asked
    counted as silent."""
    monkeypatch.setattr(pod_logs, "SECONDS", 0.2)
    kubelet, room = Kubelet(b"a"), asyncio.Semaphore(64)

    class Client:
        """As many calls at once as ours has; node n1 never answers."""

        async def fetch(self, request: requests.Request) -> bytes:
            async with room:
                if "lost" in request.path:
                    await asyncio.sleep(60)
                return await kubelet.fetch(request)

    reader = logs(Client())  # type: ignore[arg-type]

    async def script() -> None:
        lost = [asyncio.create_task(reader.end(pod(f"lost-{n}"))) for n in range(500)]
        await asyncio.sleep(0.05)
        assert not room.locked()
        assert await reader.end(pod("well", node="n2")) == "a"
        said = await asyncio.gather(*lost, return_exceptions=True)
        assert all(isinstance(one, UnreadableLog) for one in said)

    asyncio.run(asyncio.wait_for(script(), 5))


def test_words_are_whole_lines_without_secrets_and_agent_notes() -> None:
    log = "token=abc123secret\nmpi-agent| rank 3\n\x1b[31mred\x1b[0m\npw is hunter22\n"
    said = kept_lines("pi-launcher", log, (), [("DB_PASSWORD", "hunter22")])
    assert said.text == "token=[redacted]\nred\npw is [redacted]"


def test_words_are_few() -> None:
    said = kept_lines("p", "\n".join(["y" * 5000] * 90), (), [])
    assert said.cut and len(said.text) <= log_tail.CHARACTERS
    assert max(map(len, said.text.split("\n"))) == log_tail.LONGEST_LINE


def test_failed_rank_is_heard_behind_those_that_talk_much() -> None:
    cause = [f"[1,2]<stderr>:cause {n}" for n in range(20)]
    chatter = [f"[1,0]<stdout>:step {n}" for n in range(200)]
    said = kept_lines("p", "\n".join([*cause, *chatter]), (2,), [])
    lines = said.text.split("\n")
    assert lines[: log_tail.OF_RANK] == cause[-log_tail.OF_RANK :]
    assert lines[log_tail.OF_RANK :] == chatter[-log_tail.LINES :]
    assert kept_lines("p", "\n".join(cause + chatter), (), []).text.startswith("[1,0]")


def test_ranks_that_failed_are_told_by_the_agent_s_summary() -> None:
    said = parse(
        "mpi-agent 1\nlevel full\nended Command 1\ncause RankFailed 2 pi-worker-1\n"
        "bad 3 pi-worker-1 status=1\nbad 2 pi-worker-1 status=1\n"
    )
    assert log_tail.failed_ranks(said) == (2, 3)


def test_logs_that_cannot_be_read_leave_the_reason() -> None:
    kubelet = Kubelet(wrong=refusal(404))
    found = asyncio.run(with_log_tails(logs(kubelet), Attempt(1), [LogSource(pod())], [], Facts()))
    assert found.words == () and found.silence == "its log was gone before it could be read"
    found = asyncio.run(with_log_tails(logs(kubelet), Attempt(1), [], [], Facts()))
    assert "gone before its log could be read" in found.silence
    found = asyncio.run(
        with_log_tails(logs(Kubelet()), Attempt(1), [LogSource(pod())], [], Facts())
    )
    assert found.silence == "it printed nothing"
    assert log_tail.without_log_tails(Attempt(1), Facts()).silence == SWITCHED_OFF


def test_a_key_whose_beginning_the_node_did_not_send_is_hidden() -> None:
    """The kubelet gives the last 400 lines, and a key may have begun before them."""
    said = kept_lines("p", "MIIEvQIBADAN\nBgkqhkiG9w0B\n-----END PRIVATE KEY-----\nboom", (), [])
    assert said.text == "[redacted]\nboom"


def test_nothing_that_a_terminal_obeys_is_kept() -> None:
    """C1 controls and characters that turn text are obeyed as escapes are."""
    assert (
        kept_lines("p", "a\x9b31mb\x85c\u202ed\u2028e\u2066f\x1b]0;g", (), []).text == "abcdef]0;g"
    )


def test_why_an_attempt_failed_is_found_in_the_log_and_kept_without_secrets() -> None:
    log = b"Traceback (most recent call last):\nValueError: bad batch, token=abc123secret\n"
    facts = Facts(exit_code=1)
    read = with_log_tails(logs(Kubelet(log)), Attempt(1), [LogSource(pod())], [], facts)
    found = asyncio.run(read)
    assert found.cause == found.findings[0].cause == "ProgramException"
    assert found.findings[0].line == "ValueError: bad batch, token=[redacted]"


def test_what_a_rank_said_to_the_agent_is_redacted_too() -> None:
    said = parse(
        "mpi-agent 1\nlevel full\nended Command 1\nraised 1 w1 - Boom: password=hunter22\n"
    )
    read = with_log_tails(logs(Kubelet()), Attempt(1), [], [], Facts(exit_code=1, summary=said))
    assert asyncio.run(read).findings[0].line == "Boom: password=[redacted]"


@pytest.mark.parametrize("before", range(270, 300, 5))
def test_no_part_of_a_secret_is_left_where_a_finding_cuts_a_line(before: int) -> None:
    secret = "S3cr3tValue-0123456789"
    said = parse(
        "mpi-agent 1\nlevel full\nended Command 1\n"
        f"raised 1 w1 - Boom: {'x' * (before - 7)} {secret}\n"
    )
    facts = Facts(exit_code=1, summary=said)
    read = with_log_tails(logs(Kubelet()), Attempt(1), [], [("DB_PASSWORD", secret)], facts)
    assert "S3" not in asyncio.run(read).findings[0].line


def test_the_log_of_a_worker_s_sshd_shows_no_cause() -> None:
    kubelet = Kubelet(b"Traceback (most recent call last):\nValueError: bad batch\n")
    sources = [LogSource(pod(), serves=True)]
    found = asyncio.run(with_log_tails(logs(kubelet), Attempt(1), sources, [], Facts(exit_code=3)))
    assert found.words and found.cause != "ProgramException"


def test_an_attempt_that_was_suspended_has_no_cause() -> None:
    kubelet = Kubelet(b"Traceback (most recent call last):\nValueError: bad batch\n")
    ended = Attempt(1, SUSPENDED)
    read = with_log_tails(logs(kubelet), ended, [LogSource(pod())], [], Facts())
    assert asyncio.run(read).findings == ()


def test_where_words_may_not_be_kept_the_cause_is_kept_without_them() -> None:
    said = parse("mpi-agent 1\nlevel full\nended Command 1\nraised 1 w1 - Boom: secret\n")
    found = log_tail.without_log_tails(Attempt(1), Facts(exit_code=1, summary=said))
    (finding,) = found.findings
    assert (finding.cause, finding.ranks) == ("ProgramException", (1,))
    assert (finding.line, finding.followed) == ("", ())
