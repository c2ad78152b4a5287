"""`odh run`: one job in the foreground, on this machine, with real MPI."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any, TextIO

import click
import msgspec

from mpi_trainer.api.kinds.mpijob import OPEN_MPI, MPIJob, RunPolicy
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.cli import context
from mpi_trainer.cli.main import FAILED, INTERRUPTED
from mpi_trainer.cli.output import terminal
from mpi_trainer.cli.output.findings import paragraph
from mpi_trainer.cli.output.mpi_messages import MessageFolder
from mpi_trainer.cli.parameters import Mount, Pair, check_claims
from mpi_trainer.cli.verbs.mpi import ensure_installed
from mpi_trainer.cli.verbs.mpijob.options import Span, whole_seconds
from mpi_trainer.decide import reasons
from mpi_trainer.diagnose.finding import Findings
from mpi_trainer.diagnose.rank_lines import Line
from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.execute import preflight, reports
from mpi_trainer.local.execute.prepare import LocalRun, prepare, prepare_train
from mpi_trainer.local.execute.run import RunPlan, run
from mpi_trainer.local.execute.run_findings import PrintedLines
from mpi_trainer.local.execute.settings import LocalSettings, current_settings
from mpi_trainer.local.jobs import run_history
from mpi_trainer.local.mpi import distributions
from mpi_trainer.local.pods.environment import Materials
from mpi_trainer.sdk.job.new import NewJob, name_for, with_additions

replace = msgspec.structs.replace


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[--] [COMMAND]...")
@click.option("-f", "--file", "path", metavar="FILE", help="Run the job in FILE (`-`: stdin).")
@click.option("--runtime", metavar="FILE", help="Runtime of a TrainJob.  [default: by its name]")
@click.option("-w", "--workers", type=click.IntRange(1, 256), help="Worker pods.  [default: 2]")
@click.option("-s", "--slots", type=click.IntRange(1, 256), help="Ranks per worker.  [default: 1]")
@click.option(
    "--mpi",
    type=click.Choice([d.name for d in distributions.DISTRIBUTIONS]),
    help="MPI to use.  [default: openmpi, or what the file asks for]",
)
@click.option("-e", "--env", type=Pair("variable"), multiple=True, help="Set a variable.")
@click.option("--mount", "mounts", type=Mount(), multiple=True, help="Show a directory at DST.")
@click.option(
    "--claim",
    "claims",
    type=Pair("claim"),
    multiple=True,
    help="Directory that stands for a PersistentVolumeClaim.",
)
@click.option("--name", help="Name of the job.  [default: from the command]")
@click.option("--time-limit", type=Span(), help="End the job, as failed, after this long.")
@click.option("--as-is", is_flag=True, help="Do not put `mpirun -n RANKS` before the command.")
@click.option(
    "--isolation",
    type=click.Choice(["auto", "namespaces", "loopback"]),
    default="auto",
    help="How workers are kept apart. `loopback` shares your network.",
)
@click.option("--image", help="On a cluster: the image that the command runs in.")
@context.target_options
@click.option("--dry-run", is_flag=True, help="Print the layout of the job and run nothing.")
@click.option("-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text")
@click.option("-q", "--quiet", is_flag=True, help="Only the program's own output, and errors.")
def command(**options: Any) -> int:
    """Run a command or a job file with real MPI on this machine.

    \b
    odh run -w 4 -s 2 -- python train.py      8 ranks on 4 workers
    odh run --mpi mpich -- ./solver input     with MPICH
    odh run -f mpijob.yaml                    a manifest as it is
    odh run -f trainjob.yaml                  a TrainJob, with a runtime that we ship

    A command that does not start ranks by itself runs as `mpirun -n WORKERS×SLOTS COMMAND`.
    Ctrl-C stops the job and cleans up; a second Ctrl-C kills it. Where a cluster is named (with
    --backend cluster or --context) the job runs there with what this folder holds, and is removed
    at its end.
    """
    from mpi_trainer.cli.verbs import run_remote

    if run_remote.wanted():
        return run_remote.run(options)
    if options["image"]:
        raise click.UsageError("--image is for clusters: here a job runs with your own programs")
    job = _local_run(options)
    check_claims(options["claims"], job.claims)
    if options["dry_run"]:
        click.echo(_dry(job, options["output"]))
        return 0
    ready = job.run_plan()
    ensure_installed(job.distribution)
    if not options["quiet"]:
        _say_notes(job)
    ended, found = _run(job, ready, options)
    if options["output"] != "text":
        data = {**msgspec.to_builtins(ended), "findings": msgspec.to_builtins(found)}
        click.echo(_formatted(data, options["output"]))
    if not options["quiet"]:
        _summary(ended, found)
    elif ended.stopped:
        terminal.say("Stopped")
    elif ended.state != "Succeeded":
        terminal.say(f"{ended.state}: {ended.message}")
    if ended.stopped:
        return INTERRUPTED
    return 0 if ended.state == "Succeeded" else FAILED


def _say_notes(job: LocalRun) -> None:
    for note in job.notes:
        terminal.say(terminal.faint(note))
    for note in preflight.check_resources(job.job):
        terminal.say(f"warning: {note}")


def _run(
    job: LocalRun, ready: RunPlan, options: dict[str, Any]
) -> tuple[reports.JobEnded, Findings]:
    """Runs it to its end, and keeps a record of that for `odh history`."""
    started = datetime.now(UTC)
    printer = _Printer(quiet=options["quiet"], data_elsewhere=options["output"] != "text")
    ended = run(ready, printer.hear)
    printer.finish()
    launcher = job.layout.launcher
    run_history.add(
        run_history.RunRecord(
            name=job.job.name,
            command=options["words"] or (launcher.command if launcher else ()),
            folder=job.settings.cwd,
            mpi=job.distribution.name,
            ranks=len(ended.ranks),
            started=started,
            seconds=round(ended.seconds, 3),
            state="Stopped" if ended.stopped else ended.state,
            message=ended.message,
        )
    )
    return ended, printer.printed.findings(ended)


def _local_run(options: dict[str, Any]) -> LocalRun:
    words, path = tuple(options["words"]), options["path"]
    if bool(words) == bool(path):
        raise click.UsageError(
            "give either a command after `--` or a job file with -f, for example "
            "`odh run -w 2 -- python train.py`"
        )
    if words and not words[0].strip():
        raise click.UsageError("the command is empty; is a variable in it not set?")
    chosen = distributions.named(options["mpi"]) if options["mpi"] else None
    if path:
        given = [o for o in ("workers", "slots", "name", "time_limit") if options[o] is not None]
        if given:
            raise click.UsageError(
                f"--{given[0].replace('_', '-')} cannot be used with -f: change it in the file"
            )
        return _from_file(path, options)
    if options["runtime"]:
        raise click.UsageError("--runtime is for the TrainJob of a file; give that with -f")
    settings = _settings(options, Materials())
    if not options["as_is"]:
        preflight.check_command(words, settings)
    job = NewJob(
        name=options["name"] or name_for(words),
        command=words,
        workers=options["workers"] or 2,
        slots=options["slots"] or 1,
        implementation=chosen.implementation if chosen else OPEN_MPI,
        env=options["env"],
        mounts=options["mounts"],
        as_is=options["as_is"],
        run_policy=RunPolicy(active_deadline_seconds=whole_seconds(options["time_limit"])),
    ).mpijob()
    return prepare(job, settings)


def _from_file(path: str, options: dict[str, Any]) -> LocalRun:
    # YAML is a quarter of all that starting costs, and a plain command needs none.
    from mpi_trainer.cli import job_files
    from mpi_trainer.sdk.job import trainjob_specs

    file = job_files.objects(path)
    materials = Materials(
        {c.metadata.name: c.files for c in file.config_maps},
        {s.metadata.name: s.files for s in file.secrets},
    )
    settings = _settings(options, materials)
    jobs: tuple[MPIJob | TrainJob, ...] = (*file.jobs, *file.train_jobs)
    if len(jobs) != 1:
        names = ", ".join(job.name for job in jobs)
        raise LocalError(
            f"{path} holds {len(jobs)} jobs ({names}), and `odh run` runs one",
            "Put each job into a file of its own.",
        )
    if file.train_jobs:
        (job,) = file.train_jobs
        runtime = job_files.runtime_for(job, file, options["runtime"])
        job = trainjob_specs.with_env(job, options["env"])
        return prepare_train(job, trainjob_specs.with_mounts(runtime, options["mounts"]), settings)
    if options["runtime"]:
        raise click.UsageError(f"--runtime is for TrainJobs, and {path} holds an MPIJob")
    return prepare(with_additions(file.jobs[0], options["env"], options["mounts"]), settings)


def _settings(options: dict[str, Any], materials: Materials) -> LocalSettings:
    return replace(
        current_settings(dict(options["claims"])),
        distribution=options["mpi"],
        isolation=options["isolation"],
        materials=materials,
    )


class _Printer:
    """Program output goes where the program wrote it, each line with its rank."""

    def __init__(self, *, quiet: bool, data_elsewhere: bool) -> None:
        self._quiet = quiet
        self._data_elsewhere = data_elsewhere
        self._folder = MessageFolder[Line]()
        self.printed = PrintedLines()

    def finish(self) -> None:
        """After the last report."""
        for line in self._folder.rest():
            self._print(line)

    def _stream(self, line: Line) -> TextIO:
        return sys.stderr if line.stream == "stderr" or self._data_elsewhere else sys.stdout

    def _print(self, line: Line) -> None:
        stream = self._stream(line)
        tag = "" if line.rank is None else terminal.rank_tag(line.rank, stream) + " "
        print(f"{tag}{line.text}", file=stream, flush=True)

    def hear(self, report: reports.Report) -> None:
        self.printed.hear(report)
        match report:
            case Line():
                if self._stream(report).isatty():
                    for line in self._folder.feed(report):
                        self._print(line)
                else:
                    self._print(report)
            case reports.EventReport() | reports.Note() if self._quiet:
                pass
            case reports.EventReport(reason=reasons.RESTARTING):
                terminal.say(terminal.faint(f"Restarting: {report.message}"))
            case reports.EventReport(reason=reasons.PROGRESS):
                terminal.say(terminal.faint(report.message))
            case reports.EventReport(reason=reasons.PLACEMENT_SURPRISING | reasons.NO_PROGRESS):
                terminal.say(f"warning: {report.message}")
            case reports.Note():
                terminal.say(terminal.faint(report.text))


def _summary(ended: reports.JobEnded, found: Findings) -> None:
    if ended.ranks:
        rows = [(str(r.rank), r.pod, r.address, r.end) for r in ended.ranks]
        terminal.say("\n" + terminal.table(("RANK", "HOST", "ADDRESS", "EXIT"), rows))
    if ended.stopped:
        verdict = terminal.bad("Stopped")
        terminal.say(f"\n{verdict} after {ended.seconds:.1f} s; everything was cleaned up")
    elif ended.state == "Succeeded":
        hosts = len({r.pod for r in ended.ranks})
        where = f": {_count(len(ended.ranks), 'rank')} on {_count(hosts, 'host')}"
        where = where if ended.ranks else ""
        terminal.say(f"\n{terminal.good('Succeeded')} in {ended.seconds:.1f} s{where}")
    else:
        terminal.say(f"\n{terminal.bad(ended.state)} after {ended.seconds:.1f} s: {ended.message}")
        for one in found[:1]:
            if one.confidence != "possible":
                terminal.say("\n" + "\n".join(map(terminal.inert, paragraph(one))))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _dry(job: LocalRun, output: str) -> str:
    return _formatted(job.described(), "json" if output == "json" else "yaml")


def _formatted(data: Any, output: str) -> str:
    if output == "json":
        return msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
    from mpi_trainer.api.yaml.written import written

    return written(data)
