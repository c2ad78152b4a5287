"""A copy of a job with changes."""

from __future__ import annotations

from typing import Any

import click
import pytest

from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.kinds.mpijob import MPIJob, to_wire
from mpi_trainer.cli.verbs.mpijob.overrides import Overrides, assign, clone, split_command
from mpi_trainer.sdk.job.new import NewJob


def job(*command: str, as_is: bool = False) -> MPIJob:
    new = NewJob("train", command, env=(("A", "1"),), workers=2, slots=2, as_is=as_is)
    return new.mpijob()


def launcher(copy: MPIJob) -> dict[str, Any]:
    container: dict[str, Any] = copy.launcher.template.content["spec"]["containers"][0]
    return container


def test_more_workers_mean_more_ranks() -> None:
    copy = clone(job("python", "x.py"), "copy", "default", Overrides(workers=8))
    assert (copy.name, copy.workers) == ("copy", 8)
    assert launcher(copy)["command"] == ["mpirun", "-n", "16", "python", "x.py"]


def test_a_command_of_the_users_own_keeps_its_ranks() -> None:
    copy = clone(job("mpirun", "-np", "3", "x"), "copy", "default", Overrides(workers=8))
    assert launcher(copy)["command"] == ["mpirun", "-np", "3", "x"]


def test_another_command_is_started_on_every_slot() -> None:
    copy = clone(job("python", "x.py"), "copy", "default", Overrides(command=("./b", "$X")))
    assert launcher(copy)["command"] == ["mpirun", "-n", "4", "./b", "$$X"]


def test_variables_are_replaced_by_name() -> None:
    copy = clone(job("x"), "copy", "default", Overrides(env=(("A", "2"), ("B", "3"))))
    assert launcher(copy)["env"] == [{"name": "A", "value": "2"}, {"name": "B", "value": "3"}]


def test_any_field_can_be_set() -> None:
    wanted = Overrides(settings=(("spec.runPolicy.backoffLimit", "0"),))
    assert clone(job("x"), "copy", "default", wanted).spec.run_policy.backoff_limit == 0


def test_a_field_that_does_not_exist_is_refused_with_its_name() -> None:
    with pytest.raises(InvalidJob, match="backofLimit"):
        clone(job("x"), "c", "default", Overrides(settings=(("spec.runPolicy.backofLimit", "0"),)))


def test_the_past_is_not_copied() -> None:
    wire = to_wire(clone(job("x"), "copy", "default", Overrides()))
    assert "uid" not in wire["metadata"]
    assert not wire.get("status")


@pytest.mark.parametrize("path", ["", "a..b", ".a", "a[x]", "a[0]b", "[0]"])
def test_a_path_that_leads_nowhere_is_refused(path: str) -> None:
    with pytest.raises(click.UsageError):
        assign({"a": []}, path, "1")


def test_values_are_json_where_they_read_so() -> None:
    data: dict[str, Any] = {"list": [{}]}
    assign(data, "list[0].number", "3")
    assign(data, "list[0].text", "three")
    assign(data, "made.here", "true")
    assert data == {"list": [{"number": 3, "text": "three"}], "made": {"here": True}}


def test_a_command_line_is_split_as_a_shell_would_but_run_by_none() -> None:
    assert split_command("python 'a b.py' $HOME;x") == ("python", "a b.py", "$HOME;x")
    for wrong in ("'unclosed", "", "  "):
        with pytest.raises(click.UsageError):
            split_command(wrong)
