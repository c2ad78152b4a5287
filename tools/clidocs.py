"""Writes docs/cli.md from the commands themselves: usage, options, examples.

    python -m tools.clidocs            writes it
    python -m tools.clidocs --check    says whether it is up to date

An example is a line of a command's help that begins with the program's name; every one of them is
run by a test.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from mpi_trainer.cli.app import SHORT, odh

PAGE = Path(__file__).parents[1] / "docs/cli.md"
HEAD = """# The command line

One program under four names: `odh`, `oai-cli`, `kubectl odh` and `oc odh`. Every command of
`odh mpijob VERB …` can also be written `odh training VERB mpijob …`, and but for `clone` is there
for TrainJobs as well: `odh trainjob VERB …`. The verbs that are used most need no kind: `odh list`,
`get`, `describe`, `logs`, `wait`, `stop`, `resume` and `delete` reach jobs of any kind by name.
`ls` is `list`, `rm` is `delete`; `stop` and `cancel` are `suspend`: they keep the job and its logs.

Data goes to standard output, everything else to standard error. Colours appear on terminals only;
`NO_COLOR` turns them off.

| exit code | meaning |
|---|---|
| 0 | done, or the job succeeded |
| 1 | the job failed |
| 2 | wrong usage or input, or no such job |
| 124 | the time given with `--timeout` is over |
| 130 | interrupted (Ctrl-C) |

`odh mpijob exec` ends with the exit code of the command that it ran.

`-o jsonpath=` takes fields, `[N]`, `[*]`, `['quoted keys']` and text between `{…}`; filters and
ranges are refused.

<!-- Made by `python -m tools.clidocs`; change the commands' own help instead. -->
"""

WHERE = """Options that every command takes, before it or after it, as kubectl has them. Without
any, jobs are on the cluster that kubectl would use: `KUBECONFIG`, else `~/.kube/config`, else the
workbench's or the pod's own account. Where there is none they are on this machine.
`MPI_TRAINER_BACKEND=local` (or `cluster`) says it once for a whole shell.
"""


def page() -> str:
    return "\n".join([HEAD, *_anywhere(), *_sections()]).rstrip() + "\n"


def examples() -> list[str]:
    """Every example of every command, comments taken off."""
    return [example for _, command in _commands() for example in _examples(command)]


def _anywhere() -> Iterator[str]:
    """The options that every command takes, before it or after it."""
    root = click.Context(odh, info_name="odh")
    rows = [row for row in _options(root, odh) if "--version" not in row[0]]
    yield "## Where jobs are\n"
    yield WHERE
    yield "| option | |\n|---|---|"
    yield "\n".join(f"| `{names}` | {text} |" for names, text in rows) + "\n"


def _sections() -> Iterator[str]:
    for context, command in _commands():
        path = context.command_path
        yield f"## {path}\n"
        yield from _prose(command)
        yield f"```\n{_usage(context, command)}\n```\n"
        shown = _example_lines(command)
        if shown:
            yield "```sh\n" + "\n".join(shown) + "\n```\n"
        rows = list(_options(context, command))
        if rows:
            yield "| option | |\n|---|---|"
            yield "\n".join(f"| `{names}` | {text} |" for names, text in rows) + "\n"


def _commands() -> Iterator[tuple[click.Context, click.Command]]:
    root = click.Context(odh, info_name="odh")
    told: set[int] = set()
    for context, command in _below(root, odh):
        # A verb that two groups share is told once.
        if id(command) not in told:
            yield context, command
        told.add(id(command))


def _below(
    context: click.Context, command: click.Command
) -> Iterator[tuple[click.Context, click.Command]]:
    if context.parent is not None:
        yield context, command
    # `training` has no commands of its own: they are those of `mpijob`.
    if not isinstance(command, click.Group) or context.info_name == "training":
        return
    for name in command.list_commands(context):
        if command is odh and name in SHORT and name != "list":
            continue  # as `odh mpijob` has it
        inner = command.get_command(context, name)
        assert inner is not None, "a group finds what it lists"
        yield from _below(click.Context(inner, info_name=name, parent=context), inner)


def _usage(context: click.Context, command: click.Command) -> str:
    return f"{context.command_path} {' '.join(command.collect_usage_pieces(context))}"


def _paragraphs(command: click.Command) -> list[str]:
    return inspect.cleandoc(command.help or "").replace("\f", "").split("\n\n")


def _prose(command: click.Command) -> Iterator[str]:
    for paragraph in _paragraphs(command):
        if not paragraph.startswith("\b"):
            yield " ".join(paragraph.split()) + "\n"


def _example_lines(command: click.Command) -> list[str]:
    blocks = [p for p in _paragraphs(command) if p.startswith("\b")]
    lines = [line for block in blocks for line in block.splitlines()[1:]]
    return [_commented(line) for line in lines]


def _examples(command: click.Command) -> list[str]:
    return [line.partition("  # ")[0].strip() for line in _example_lines(command)]


def _commented(line: str) -> str:
    """What stands far to the right of an example says what it does."""
    code, gap, words = line.partition("   ")
    words = words.strip().removeprefix("# ")
    return f"{code.strip()}  # {words}" if gap and words else line.strip()


def _options(context: click.Context, command: click.Command) -> Iterator[tuple[str, str]]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record and "--help" not in record[0]:
            yield record[0].replace("|", "\\|"), " ".join(record[1].split()).replace("|", "\\|")


def main(words: list[str]) -> int:
    fresh = page()
    if "--check" in words:
        current = PAGE.exists() and PAGE.read_text() == fresh
        print("docs/cli.md is " + ("up to date" if current else "old; run python -m tools.clidocs"))
        return 0 if current else 1
    PAGE.write_text(fresh)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
