"""Programs that do not start, and exceptions of those that do: Python, C++, Fortran and others."""

from __future__ import annotations

from typing import Final

from mpi_trainer.diagnose.rules.model import (
    ABORTED,
    BAD_TERMINATION,
    EXCEPTION,
    HOST,
    PROOF,
    RANK,
    SIGNALLED,
    SPECIFIC,
    STARTUP,
    Cause,
    Detail,
    Rule,
    said,
)

_EXCEPTION = ("ProgramException",)

CAUSES: Final = (
    Cause(
        "ProgramException",
        "The program failed with an exception of its own",
        "Nothing of MPI or of the cluster is wrong; the traceback names the line.",
        "Correct the line that the traceback names. Run Python as `python -m mpi4py SCRIPT`, so "
        "that the other ranks end at once instead of waiting.",
    ),
    Cause(
        "ProgramReportedError",
        "The program reported an error and ended",
        "It ended itself; the line is its own last word about it.",
        "Do what the line says; `odh mpijob logs NAME` shows the lines around it.",
        ("ProgramException", "RankExitedNonZero", "RankExitedEarly", "MpiAbort"),
    ),
    Cause(
        "ProgramSyntaxError",
        "A file of the program is not valid Python, or not valid shell",
        "It could not be compiled, often because it was written for another version or another "
        "shell.",
        "Correct the line that the message names, or take an image with the Python or shell that "
        "it needs.",
        _EXCEPTION,
    ),
    Cause(
        "ProgramUsage",
        "The program refuses its arguments",
        "An option is misspelt, missing or of a wrong type; its own usage text says which.",
        "Correct the arguments in the launcher's `command` or `args`.",
        ("RankExitedNonZero",),
    ),
    Cause(
        "ProgramNotFound",
        "The program does not exist where ranks start",
        "The path is misspelt, the image has it elsewhere, or a volume is mounted on the launcher "
        "alone.",
        "Correct the path in the launcher's `command`, and use one image and the same volume "
        "mounts for launcher and workers.",
    ),
    Cause(
        "ScriptNotFound",
        "Python cannot open the script",
        "The path is relative to another directory, or the file is not in the workers' image.",
        "Give the script's absolute path, set `workingDir`, or send the folder along with "
        "`--workdir`.",
        ("ProgramNotFound", "RankExitedNonZero"),
    ),
    Cause(
        "ProgramNotExecutable",
        "The program may not be executed",
        "The file lacks the x bit, is a directory, or lies on a volume mounted noexec.",
        "Run `chmod +x` when the image is built, or start it through its interpreter "
        "(`python train.py`).",
    ),
    Cause(
        "ProgramWrongArchitecture",
        "The program is for another kind of processor",
        "The image or the program was built for another architecture than the node has, or a "
        "script lacks its first line `#!`.",
        "Build the image for the nodes' architecture, or choose nodes with `nodeSelector: "
        "kubernetes.io/arch`.",
        ("ProgramNotExecutable",),
    ),
)

RULES: Final = (
    # --- it does not start
    *said(
        "ProgramNotFound",
        STARTUP,
        "executable file not found in $PATH",
        "unable to find the specified executable file",
        "could not find an executable",
    ),
    # A container runtime's words, which are more exact than that no container was created.
    Rule(
        "ProgramNotFound",
        PROOF + 1,
        ": exec: ",
        r': exec: "[^"]{1,400}": (?:executable file not found|(?:stat .{1,400}: )?no such file)',
        (
            "OCI runtime create failed: runc create failed: unable to start container process: "
            'exec: "mpirunn": executable file not found in $PATH: unknown',
        ),
    ),
    Rule(
        "ProgramNotExecutable",
        PROOF + 1,
        ": exec: ",
        r': exec: "[^"]{1,400}": (?:permission denied|is a directory)',
        (
            "OCI runtime create failed: runc create failed: unable to start container process: "
            'exec: "/app/run.sh": permission denied: unknown',
        ),
    ),
    # Open MPI says the same of a program that is missing and of one that may not be executed.
    Rule(
        "ProgramNotFound",
        STARTUP,
        "access an executable:",
        examples=("access an executable:",),
        instead="ProgramNotExecutable",
    ),
    Rule(
        "ProgramNotFound",
        STARTUP,
        "as it could not access",
        r"as it could not access$",
        ("mpirun was unable to launch the specified application as it could not access",),
        instead="ProgramNotExecutable",
    ),
    Rule(
        "ProgramNotFound",
        STARTUP,
        "execvp error on file",
        rf"^\[proxy:[\d:]{{1,20}}@{HOST}\] .{{1,300}}execvp error on file .{{1,400}}"
        r"\(No such file or directory\)",
        (
            "[proxy:0:1@n1] HYDU_create_process (utils/launch/launch.c:73): execvp error on file "
            "/opt/app/train (No such file or directory)",
        ),
    ),
    Rule(
        "ProgramNotExecutable",
        STARTUP,
        "execvp error on file",
        rf"^\[proxy:[\d:]{{1,20}}@{HOST}\] .{{1,300}}execvp error on file .{{1,400}}"
        r"\((?:Permission denied|Is a directory)\)",
        (
            "[proxy:0:1@n1] HYDU_create_process (utils/launch/launch.c:73): execvp error on file "
            "/opt/app/train (Permission denied)",
        ),
    ),
    *said(
        "ProgramNotExecutable",
        STARTUP + 1,
        "as it lacked permissions to execute",
        "lacked permissions to execute",
    ),
    Rule(
        "ProgramNotExecutable",
        STARTUP - 1,
        "Permission denied",
        r"^(?:(?:\S{0,60}sh|env|exec): (?:line \d{1,6}: |\d{1,6}: |exec: )?|"
        r"\S{1,200}: \d{1,6}: exec: )\S{1,400}: (?:Permission denied|cannot execute)",
        (
            "bash: line 1: ./train.sh: Permission denied",
            "sh: 1: /app/run: Permission denied",
            "/app/start: 3: exec: /app/solver: Permission denied",
        ),
        unless=("/.bash", "/.profile"),
    ),
    Rule(
        "ProgramNotFound",
        STARTUP,
        "execve",
        r'via the "execve" system call but failed\..{1,900}Error: {1,20}No such file',
        (
            'Open MPI tried to fork a new process via the "execve" system call but failed. It may '
            "be another problem. Local host: n1 Error:   No such file or directory",
        ),
    ),
    # Which of several reasons it was, PRTE does not say.
    Rule(
        "ProgramNotExecutable",
        STARTUP - 2,
        "was unable to start the specified application",
        examples=("mpirun was unable to start the specified application as it encountered an",),
        instead="ProgramNotFound",
    ),
    *said("ProgramNotFound", STARTUP, "has a bad interpreter on the first line"),
    *said("ProgramNotExecutable", STARTUP - 1, 'a new process via the "execve" system call but'),
    *said("ProgramWrongArchitecture", STARTUP, "Exec format error", "exec format error"),
    Rule(
        "ProgramWrongArchitecture",
        STARTUP - 1,
        "ELF",
        r"^\S{1,300}: (?:line )?\d{1,3}: .{0,6}ELF.{0,40}: (?:command )?not found",
        ("/opt/app/train: 1: \x7fELF: not found",),
    ),
    *said(
        "ProgramWrongArchitecture",
        STARTUP - 1,
        "cannot execute binary file",
        "Could not open '/lib/ld-linux",
        "Could not open '/lib64/ld-linux",
        "qemu: uncaught target signal",
    ),
    # A script may go on after it.
    Rule(
        "ProgramNotFound",
        EXCEPTION - 1,
        "command not found",
        r"^\S{0,60}: (?:line \d{1,6}: )?\S{1,200}: command not found",
        ("/app/run.sh: line 3: pyhton: command not found",),
    ),
    Rule(
        "ProgramNotFound",
        SPECIFIC,
        "not found",
        r"^(?:\S{0,60}sh: \d{1,6}: (?:exec: )?|\S{1,200}: \d{1,6}: exec: )\S{1,200}: not found",
        ("/bin/sh: 1: pyhton: not found", "/app/start: 3: exec: pyhton: not found"),
    ),
    Rule(
        "ProgramNotFound",
        SPECIFIC,
        "No such file or directory",
        r"^(?:(?:/usr/bin/)?env: .{1,300}|\S{0,60}sh: (?:line )?\d{1,6}: (?:exec: )?\S{1,300}): "
        r"No such file or directory",
        (
            "env: 'pyhton': No such file or directory",
            "bash: line 1: /x/y: No such file or directory",
        ),
    ),
    Rule(
        "ProgramNotFound",
        SPECIFIC,
        "cannot execute: required file not found",
        examples=("bash: line 1: ./train: cannot execute: required file not found",),
    ),
    Rule(
        "ProgramNotFound",
        SPECIFIC,
        "bad interpreter",
        examples=("./run.py: /usr/bin/pyhton: bad interpreter: No such file or directory",),
    ),
    Rule(
        "ScriptNotFound",
        SPECIFIC,
        "can't open file '",
        r"can't open file '[^']{1,400}': \[Errno (?:2|13|20|21)\]",
        ("python: can't open file '/app/trian.py': [Errno 2] No such file or directory",),
    ),
    Rule(
        "ScriptNotFound",
        SPECIFIC,
        "can't find '__main__' module in",
        examples=("python: can't find '__main__' module in '/app'",),
    ),
    Rule(
        "ProgramUsage",
        ABORTED + 2,
        ": error: ",
        r"^\S{1,200}: error: (?:unrecognized arguments|the following arguments are required|"
        r"argument \S|ambiguous option|invalid choice|expected)",
        ("train.py: error: unrecognized arguments: --epohcs 3",),
    ),
    Rule(
        "ProgramUsage",
        ABORTED + 2,
        "Error: No such option",
        examples=("Error: No such option: --epohcs",),
    ),
    Rule(
        "ProgramReportedError",
        ABORTED + 1,
        "error: ",
        r"^(?:\S{1,60}: )?(?:fatal )?error: \S",
        ("error: config file /etc/train.yaml not found",),
        unless=("srun: ", "slurmstepd: "),
    ),
    Rule(
        "ProgramReportedError",
        ABORTED + 1,
        "ERROR",
        r"^(?:ERROR|FATAL|CRITICAL)(?: ERROR)?: \S|\b(?:CRITICAL|FATAL)\b.{0,3} \S",
        ("ERROR: no input files match /data/*.tfrecord",),
    ),
    Rule(
        "ProgramReportedError",
        ABORTED + 1,
        "FATAL",
        r"^\[?FATAL(?: ERROR)?\]?:? \S",
        ("FATAL: mesh file is empty",),
    ),
    Rule(
        "ProgramReportedError",
        ABORTED + 1,
        "Error: ",
        r"^(?:Fatal )?Error: \S",
        ("Error: dataset has no training split",),
    ),
    # --- Python's own; everything that ends in Error is read by the log reader itself
    Rule(
        "ProgramSyntaxError",
        EXCEPTION + 2,
        "Error: ",
        r"^(?:SyntaxError|IndentationError|TabError): ",
        ("SyntaxError: invalid syntax",),
    ),
    Rule(
        "ProgramSyntaxError",
        SPECIFIC,
        "error",
        r"^\S{1,300}: (?:-c: )?(?:line )?\d{1,6}: [Ss]yntax error",
        (
            "bash: -c: line 1: syntax error near unexpected token `then'",
            'sh: 1: Syntax error: "fi" unexpected',
        ),
    ),
    Rule(
        "ConfigurationInvalid",
        SPECIFIC - 1,
        "unbound variable",
        r"^\S{1,300}: (?:line )?\d{1,6}: \w{1,80}: unbound variable",
        ("bash: line 1: DATA_DIR: unbound variable",),
    ),
    Rule(
        "ConfigurationInvalid",
        SPECIFIC - 1,
        "parameter not set",
        r"^\S{1,300}: (?:line )?\d{1,6}: \w{1,80}: parameter not set",
        ("sh: 1: DATA_DIR: parameter not set",),
    ),
    # Of a program that has called another one, which says more, or mpirun.
    Rule(
        "ProgramException",
        ABORTED + 3,
        "CalledProcessError: ",
        r"returned non-zero exit status \d",
        ("subprocess.CalledProcessError: Command '['make']' returned non-zero exit status 2.",),
    ),
    Rule(
        BAD_TERMINATION,
        SIGNALLED,
        "died with <Signals.",
        r"CalledProcessError: .{1,1900}died with <Signals\.SIG\w{2,8}: (?P<signal>\d{1,2})>",
        ("CalledProcessError: Command '['python', 'train.py']' died with <Signals.SIGKILL: 9>.",),
    ),
    Rule(
        "ProgramException",
        EXCEPTION,
        "Fatal Python error:",
        unless=("Segmentation fault", "Aborted", "Bus error", "Floating point"),
        examples=("Fatal Python error: init_fs_encoding: failed to get the Python codec",),
    ),
    # --- other languages
    # Watchdogs of frameworks end ranks by it; what they have seen weighs more.
    *said("ProgramException", EXCEPTION - 3, "terminate called after throwing an instance of"),
    Rule(
        "ProgramException",
        EXCEPTION,
        "Fortran runtime error",
        examples=("Fortran runtime error: End of file",),
    ),
    Rule(
        "ProgramException",
        EXCEPTION,
        "ERROR STOP",
        r"^ERROR STOP\b",
        ("ERROR STOP Convergence failed",),
    ),
    *said("ProgramException", EXCEPTION - 1, "Error termination. Backtrace"),
    *said(
        "ProgramException",
        EXCEPTION,
        "terminate called without an active exception",
        "terminating due to uncaught exception of type",
        "terminating with uncaught exception of type",
        "all goroutines are asleep - deadlock",
    ),
    Rule(
        "RankArithmeticError",
        EXCEPTION,
        "forrtl: ",
        r"^forrtl: (?:severe|error) \((?:65|7[1-6])\): (?:floating|integer)",
        ("forrtl: error (73): floating divide by zero",),
    ),
    Rule(
        "ProgramException",
        EXCEPTION,
        "forrtl: ",
        r"^forrtl: (?:severe|error) \((?!174|78\b|65|7[1-6])",
        ("forrtl: severe (24): end-of-file during read, unit 11, file /data/in",),
    ),
    Rule(
        "ProgramException",
        EXCEPTION,
        "panicked at",
        r"^thread '[^']{1,80}' (?:\(\d{1,9}\) )?panicked at",
        ("thread 'main' panicked at src/main.rs:4:5:",),
    ),
    Rule("ProgramException", EXCEPTION, "panic: ", r"^panic: ", ("panic: runtime error: index",)),
    Rule(
        "ProgramException",
        EXCEPTION,
        "Exception in thread",
        r"^Exception in thread \"",
        ('Exception in thread "main" java.lang.IllegalStateException: no data',),
    ),
    Rule(
        "ProgramException",
        EXCEPTION,
        "ERROR: LoadError:",
        examples=("ERROR: LoadError: BoundsError: attempt to access 3-element Vector",),
    ),
    Rule(
        "ProgramException",
        EXCEPTION,
        "Execution halted",
        r"^Execution halted",
        ("Execution halted",),
    ),
    Rule(
        "ProgramException",
        EXCEPTION - 2,
        "Uncaught exception",
        r"[Uu]ncaught exception(?: in|:)",
        ("[rank 1] Uncaught exception: bad_weak_ptr",),
    ),
)

DETAILS: Final = (
    Detail(
        "ProgramNotExecutable",
        "Local host: ",
        rf"^\s{{1,8}}Local host: {{1,12}}{HOST}",
        "  Local host:        n1",
    ),
    Detail("ProgramNotFound", "Node: ", rf"^\s{{0,8}}Node:\s{{1,16}}{HOST}", "Node:       n1"),
    Detail("ProgramNotExecutable", "Node: ", rf"^\s{{0,8}}Node: {HOST}", "Node: n1"),
    Detail(
        "ProgramNotFound",
        "start process rank",
        rf"start process rank {RANK}",
        "while attempting to start process rank 1.",
    ),
    Detail(
        "ProgramNotExecutable",
        "start process rank",
        rf"start process rank {RANK}",
        "while attempting to start process rank 1.",
    ),
    Detail("WorkingDirectoryMissing", "Node: ", rf"^\s{{0,8}}Node: {HOST}", "Node: n1"),
)

BOILERPLATE: Final[tuple[str, ...]] = ()
NOISE: Final[tuple[str, ...]] = ("processes failed to start", "Traceback (most recent call last)")
