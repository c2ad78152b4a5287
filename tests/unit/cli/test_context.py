"""Which place a command line means, before anything is asked of it."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from mpi_trainer.cli.context import Target, on_cluster, target_with
from mpi_trainer.sdk.client.connect import configured


@pytest.mark.parametrize(
    ("place", "environ", "cluster"),
    [
        (Target(), {}, False),
        (Target(), {"KUBECONFIG": "/nowhere"}, True),
        (Target(), {"OPENSHIFT_API_URL": "https://api"}, True),
        (Target(), {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, False),
        (Target(), {"KUBECONFIG": "/nowhere", "MPI_TRAINER_BACKEND": "local"}, False),
        (Target(), {"MPI_TRAINER_BACKEND": "cluster"}, True),
        (Target(backend="local"), {"KUBECONFIG": "/nowhere"}, False),
        (Target(backend="cluster"), {"MPI_TRAINER_BACKEND": "local"}, True),
        (Target(context="c"), {}, True),
        (Target(kubeconfig="f"), {}, True),
        (Target(as_user="u"), {}, True),
        (Target(namespace="n"), {}, False),
    ],
)
def test_what_is_said_wins_over_what_is_found(
    place: Target, environ: dict[str, str], cluster: bool
) -> None:
    assert on_cluster(place, environ) is cluster


def test_what_was_typed_counts_before_the_environment() -> None:
    assert on_cluster(Target(context="prod"), {"MPI_TRAINER_BACKEND": "local"})
    assert not on_cluster(Target(context="prod", backend="local"), {})


def test_a_kubeconfig_in_the_home_folder_is_found(tmp_path: Path) -> None:
    assert not configured({"HOME": str(tmp_path)})
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube/config").touch()
    assert configured({"HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["list", "--context", "c"], Target(context="c")),
        (["list", "--context=c", "--as=u"], Target(context="c", as_user="u")),
        (["list", "--backend", "local", "x"], Target(backend="local")),
        (["list", "--kubeconfig"], Target()),
    ],
)
def test_words_that_nobody_has_read_yet_count_too(words: list[str], place: Target) -> None:
    assert target_with(click.Context(click.Command("x")), words) == place
