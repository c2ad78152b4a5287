"""The command line: ours, and the public operator's."""

from __future__ import annotations

import pytest

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


@pytest.mark.parametrize("wrong", ["--log-tail=perhaps", "--lease-duration=soon", "--nonsense"])
def test_nonsense_is_refused(wrong: str) -> None:
    with pytest.raises(SystemExit):
        parse([wrong])
