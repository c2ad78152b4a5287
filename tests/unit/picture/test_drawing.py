"""A command in a real pseudo-terminal becomes a picture, or a refusal that says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.picture.__main__ import main


def draw(folder: Path, script: str, *options: str) -> tuple[int, str]:
    target = folder / "new" / "demo.svg"
    code = main([str(target), *options, "--", "sh", "-c", script])
    return code, target.read_text() if target.exists() else ""


def test_command_sees_a_terminal_of_the_given_width(tmp_path: Path) -> None:
    code, picture = draw(tmp_path, "test -t 1 && stty size", "--columns", "72")
    assert code == 0
    assert ">50 72</tspan>" in picture


def test_picture_begins_with_the_command(tmp_path: Path) -> None:
    _, picture = draw(tmp_path, "echo 'it is'")
    assert picture.index("sh -c ") < picture.index(">it is<")


def test_failed_command_makes_no_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert draw(tmp_path, "echo broken; exit 3") == (1, "")
    assert "no picture: the command ended with 3:\nbroken" in capsys.readouterr().err.replace(
        "\r", ""
    )


def test_path_of_this_machine_makes_no_picture(tmp_path: Path) -> None:
    assert draw(tmp_path, "pwd") == (1, "")


def test_line_that_does_not_fit_makes_no_picture(tmp_path: Path) -> None:
    assert draw(tmp_path, "printf '%91s' x") == (1, "")
