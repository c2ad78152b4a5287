"""The command line: ours, and the public operator's."""

from __future__ import annotations

import pytest

from mpi_trainer.api.kinds.network_isolation import IsolationDefault
from mpi_trainer.controller.flags import parse


def test_the_public_operators_flags_are_taken() -> None:
    flags = parse(
        [
            *("-alsologtostderr", "--lock-namespace=mpi-operator", "--threadiness=2", "-v=2"),
            *("--kube-api-qps", "50", "--kube-api-burst=100", "--cluster-domain=example.org"),
            *("--gang-scheduling=volcano", "--monitoring-port=8443", "--kubeConfig=/k"),
        ]
    )
    assert flags.cluster_domain == "example.org"
    assert flags.gang_scheduling == "volcano"
    assert flags.ports == (8080, 8443)
    assert flags.kubeconfig == "/k"
    assert set(flags.ignored) == {
        *("threadiness", "kube-api-qps", "kube-api-burst", "alsologtostderr", "v")
    }


def test_metrics_may_be_served_apart() -> None:
    """S-16; without the switch the flags mean what they meant."""
    assert parse([]).secure_metrics == 0
    assert parse(["--metrics-port=9000"]).ports == (8080, 9000)
    apart = parse(["--secure-metrics", "--metrics-cert-dir=/c"])
    assert (apart.ports, apart.secure_metrics, apart.metrics_cert_dir) == ((8080,), 8443, "/c")
    chosen = parse(["--secure-metrics", "--metrics-port=9000"])
    assert (chosen.ports, chosen.secure_metrics) == ((8080,), 9000)
    assert parse(["--secure-metrics", "--secure-metrics=off"]).secure_metrics == 0


def test_namespaces_may_be_given_in_any_way() -> None:
    assert parse(["--namespaces=a,b", "--namespace", "c"]).namespaces == ("a", "b", "c")
    assert parse([]).namespaces == ()


def test_times_may_be_written_as_go_does() -> None:
    assert parse(["--lease-duration=15s", "--renew-deadline=10", "--retry-period=500ms"]).lease == (
        15.0,
        10.0,
        0.5,
    )


def test_switches_take_words() -> None:
    assert parse(["--log-tail=off"]).log_tail is False
    assert parse(["--beside-upstream"]).beside_upstream is True
    assert parse([]).schedule_timeout == 300


@pytest.mark.parametrize(
    "wrong",
    ["--log-tail=perhaps", "--lease-duration=soon", "--nonsense", "--workers=0", "--workers=-1",
     "--health-port=-1", "--metrics-port=65536", "--status-port=x", "--schedule-timeout-default=-5",
     "--retry-period=0", "--renew-deadline=20", "--lease-duration=1"],
)  # fmt: skip
def test_nonsense_is_refused(wrong: str) -> None:
    with pytest.raises(SystemExit):
        parse([wrong])


def test_networks_are_open_unless_an_administrator_closes_them() -> None:
    """CTL-6."""
    assert parse([]).isolation == IsolationDefault()
    given = parse(["--network-policy-default=restricted", "--network-egress-default=10.0.0.0/8"])
    assert given.isolation == IsolationDefault("restricted", "10.0.0.0/8")


def test_addresses_that_are_none_end_the_start(capsys: pytest.CaptureFixture[str]) -> None:
    """CTL-6: an administrator who misspells them must not believe that they hold."""
    with pytest.raises(SystemExit):
        parse(["--network-egress-default=10.0.0.1"])
    assert "must be all, none, cluster, or ranges" in capsys.readouterr().err


@pytest.mark.parametrize(
    "given",
    [
        ("--secure-metrics", "--metrics-port=8080"),
        ("--secure-metrics", "--health-port=8443"),
        ("--status-port=8080",),
        ("--secure-metrics", "--status-port=8443"),
    ],
)
def test_two_servers_do_not_share_a_port(
    given: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse(given)
    assert "can be used once" in capsys.readouterr().err


def test_probes_and_open_metrics_may_share_a_port() -> None:
    assert parse(["--metrics-port=8080"]).ports == (8080,)
    assert parse(["--status-port=8080", "--trainjobs=off"]).status_port == 0
    assert parse(["--secure-metrics", "--status-port=9443"]).secure_metrics == 8443
