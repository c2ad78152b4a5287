"""`odh dashboard`: the dashboard and the REST API on this machine, for who starts it."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
import webbrowser
from pathlib import Path

import click

from mpi_trainer.cli.context import connect, target_options
from mpi_trainer.cli.output import terminal
from mpi_trainer.local.errors import LocalError


@click.command()
@click.option(
    "--port", type=click.IntRange(1, 65535), help="Where to listen.  [default: any free port]"
)
@click.option("--grpc-port", type=click.IntRange(1, 65535), help="Serve gRPC as well, here.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@target_options
def command(port: int | None, grpc_port: int | None, no_browser: bool) -> None:
    """Open the dashboard in a browser, and serve it until Ctrl-C.

    It acts with your kubeconfig, or on this machine's jobs, and listens on 127.0.0.1 alone. The
    address that it prints has a token, which is also good as a bearer token for the REST API
    and gRPC; commands to try are in docs/server.md and docs/grpc.md.
    """
    from mpi_trainer.runtime import logs
    from mpi_trainer.server.serve import LOOPBACK, serve_loopback

    logs.set_up()

    def opened(address: str) -> None:
        click.echo(address)
        sys.stdout.flush()
        if not no_browser:
            page = Path(scratch, "dashboard.html")
            page.write_text(f'<meta http-equiv="refresh" content="0; url={address}">\n')
            # A browser in this terminal would keep the server waiting.
            threading.Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()

    try:
        # All users of the machine see a browser's command line, but only this one sees the page.
        with tempfile.TemporaryDirectory(prefix="odh-dashboard-") as scratch:
            asyncio.run(serve_loopback(connect(), port or 0, opened, grpc_port))
    except OSError as error:
        raise LocalError(
            f"cannot listen on {LOOPBACK}: {error.strerror or error}",
            "Choose another port, or leave it out.",
        ) from error
    terminal.say("stopped")
