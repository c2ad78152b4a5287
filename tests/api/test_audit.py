"""The audit log tells, of chosen users alone, who asked for what, and never what was inside."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest

from tests.cluster import Kubectl
from tools.cluster import kubeconfig, pki
from tools.cluster.down import down
from tools.cluster.errors import ClusterError
from tools.cluster.spec import Spec
from tools.cluster.up import up

WANTED = Spec(name="test-audit", profile="api", audit=True, audit_users=("watched",))


@pytest.fixture
def audited(api_server: Spec) -> Iterator[Kubectl]:
    """kubectl for a cluster that keeps an audit log; it starts with everything built."""
    down(WANTED.name)
    yield Kubectl(up(WANTED))
    down(WANTED.name)


def _as(spec: Spec, user: str) -> str:
    """The option that makes kubectl act as another user, who is an administrator too."""
    pki.issue(spec.state / "pki", pki.Identity(user, user, "system:masters"))
    target = spec.state / f"{user}.kubeconfig"
    kubeconfig.write(target, spec.api_url, spec.state / "pki", user)
    return f"--kubeconfig={target}"


def test_only_the_named_users_requests_are_in_the_audit_log_at_once(audited: Kubectl) -> None:
    secret = ("create", "secret", "generic")
    audited(*secret, "theirs", "--from-literal=key=secret-value", _as(audited.spec, "watched"))
    audited(*secret, "ours", "--from-literal=key=value")
    log = (audited.spec.state / "log" / "audit.log").read_text()
    events = [json.loads(line) for line in log.splitlines()]
    assert "theirs" in {event.get("objectRef", {}).get("name") for event in events}
    assert {event["user"]["username"] for event in events} == {"watched"}
    assert base64.b64encode(b"secret-value").decode() not in log
    with pytest.raises(ClusterError, match="another shape"):
        up(Spec(name=WANTED.name, profile="api", audit=True, audit_users=("other",)))
