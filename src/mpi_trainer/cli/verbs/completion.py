"""`odh completion SHELL`: the script that makes the shell complete verbs, options and job names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from mpi_trainer.cli import context

NAMES = ("odh", "oai-cli")


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the shell's completion for this program.

    \b
    eval "$(odh completion bash)"         # in ~/.bashrc
    eval "$(odh completion zsh)"          # in ~/.zshrc, after compinit
    odh completion fish | source          # in ~/.config/fish/config.fish
    """
    root = click.get_current_context().find_root().command
    kind = get_completion_class(shell)
    assert kind is not None, "click knows the shells that are offered"
    for name in dict.fromkeys((context.program_name().split()[0], *NAMES)):
        variable = f"_{name.replace('-', '_')}_COMPLETE".upper()
        click.echo(kind(root, {}, name, variable).source())
