"""What mpirun is told: options, hostfiles, slots and bindings that it cannot use."""

from __future__ import annotations

from typing import Final

from mpi_trainer.diagnose.rules.model import HOST, STARTUP, Cause, Detail, Rule, said

_MPIRUN = r"(?:mpirun|mpiexec|prterun|orterun)[\w.]{0,20}"
_HYDRA = r"^\[(?:mpiexec@|proxy:[\d:]{1,20}@)[^\]]{1,253}\] "

CAUSES: Final = (
    Cause(
        "NotEnoughSlots",
        "More ranks were asked for than there are slots",
        "`mpirun -n` asks for more ranks than workers and their slots allow.",
        "Raise `slotsPerWorker` (`--slots`) or the worker replicas (`--workers`), or lower `-n` of "
        "mpirun.",
    ),
    Cause(
        "HostfileMissing",
        "mpirun cannot read its hostfile",
        "The file that `--hostfile` or an MCA parameter names is not in the launcher.",
        "Leave the hostfile to the job: remove `--hostfile` from the command; the right one is "
        "/etc/mpi/hostfile.",
    ),
    Cause(
        "HostfileInvalid",
        "mpirun cannot use its list of hosts",
        "The hostfile or rankfile is empty or has a line that mpirun does not understand, or "
        "`--host` names hosts that are not in it.",
        "Leave the hostfile to the job: remove `--hostfile`, `--host` and `--rankfile` from the "
        "command, or write one host with `slots=N` on each line.",
        ("HostfileMissing",),
    ),
    Cause(
        "LauncherOptionUnknown",
        "mpirun does not know an option",
        "The option belongs to another MPI or another version.",
        "Take the option out of the command, or set `mpiImplementation` (`--mpi`) to the MPI "
        "that the image has.",
    ),
    Cause(
        "LauncherOptionInvalid",
        "mpirun cannot use the value of an option",
        "A value is misspelt or missing, two options contradict each other, or the program's name "
        "is missing at the end of the command.",
        "Correct the option that the message names; each MPI has its own values: see `mpirun "
        "--help` of the job's image.",
        ("LauncherOptionUnknown",),
    ),
    Cause(
        "BindingImpossible",
        "Ranks cannot be bound to processors as asked",
        "mpirun counts the cores that the container shows, and there are fewer than it binds to.",
        "Add `--bind-to none` to mpirun, or raise the workers' `resources.requests.cpu`.",
    ),
)

RULES: Final = (
    *said(
        "NotEnoughSlots",
        STARTUP,
        "not enough slots available",
        "allocated for this job are already filled",
        "more processes than the ppr for",
        "no allocated resources for the application",
        "exceeds the allocated number of slots",
        "not enough nodes in your allocation",
        "not enough slots on the nodes in your allocation",
        "not enough resources on the available nodes",
        "more processes than we can launch under",
        "too many processes being placed on a node",
        "not enough node entries were given",
    ),
    # --- files of hosts
    *said(
        "HostfileMissing",
        STARTUP,
        "unable to open the hostfile",
        "unable to open the rankfile",
        "unable to open host file",
        "no such file, or not a regular file",
        "hosts from a hostfile, but the file could not be opened",
    ),
    *said(
        "HostfileInvalid",
        STARTUP,
        "detected a bad parameter in the hostfile",
        "detected a parse error in the hostfile",
        "detected a parse error in the rankfile",
        "invalid syntax in the rankfile",
        "invalid syntax in sequential hostfile",
        "encountered a line that specified a non-existent CPU",
        "The rankfile that was used claimed that a host was either not",
        "Rankfile claimed host",
        "A rank is missing its location specification",
        "A hostfile was provided that contains",
        "No nodes are available for this job",
        "no available nodes allocated to this job",
        "requested hosts are not included in the current",
        "requested hosts is not included in the current",
        "requested ranks are not included in the current",
        "that is not in your allocation",
        "A relative host was specified",
    ),
    Rule(
        "HostfileInvalid",
        STARTUP,
        "not supported at this time",
        rf"{_HYDRA}.{{1,200}}token \S{{1,100}} not supported at this time",
        (
            "[mpiexec@l] process_mfile_token (lib/tools/bootstrap/hf.c:46): token slots not "
            "supported at this time",
        ),
    ),
    # --- options
    Rule(
        "LauncherOptionUnknown",
        STARTUP,
        "unknown option",
        rf"^(?:/\S{{0,300}}/)?{_MPIRUN}: Error: unknown option",
        (
            'mpirun: Error: unknown option "--bogus"',
            '/opt/mpi/bin/mpirun: Error: unknown option "--bogus"',
        ),
    ),
    Rule(
        "LauncherOptionUnknown",
        STARTUP,
        "unrecognized option",
        rf"{_MPIRUN}(?:: unrecognized option| command line:)",
        (
            "prterun: unrecognized option '--bogus'",
            "An unrecognized option was included on the mpirun command line:",
        ),
    ),
    Rule(
        "LauncherOptionUnknown",
        STARTUP,
        "unrecognized argument",
        rf"{_HYDRA}(?:match_arg .{{1,200}})?unrecognized argument",
        (
            "[mpiexec@l] match_arg (lib/utils/args.c:166): unrecognized argument bogus",
            "[mpiexec@l] unrecognized argument bogus",
        ),
    ),
    *said(
        "LauncherOptionUnknown",
        STARTUP,
        "generic MCA param that is not recognized",
        "prterun: invalid option",
        "mpirun: invalid option",
    ),
    *said(
        "LauncherOptionInvalid",
        STARTUP,
        "option does not match the expected format",
        "directive contains an unrecognized",
        "request contains an unrecognized",
        "pattern that doesn't match the required syntax",
        "No executable was specified on the",
        "could not find anything to do",
        "Unable to open the appfile",
        "Unable to locate the variable file",
        "Parsing error in variable file",
        "given a negative number of processes",
        "that requires a value, but",
        "contains a directive that is missing a value",
        "option requires passing two values",
        "too many instances of the following option",
        "MCA param being specified on the command line, with",
        "stdin target is out of range",
        "proc-per-resource request is not correct",
        "processes per resource (ppr) to be mapped",
        "but failed to provide the number of processes",
        "failed to specify the number of processes",
        "number of processes to start was omitted",
        "proc-per-resource MPI_Info key is not correct",
        'incorrect value for the "--',
        "can only take a single negation operator",
        "interface include and exclude lists were",
        "Both static and dynamic port ranges were specified",
    ),
    Rule(
        "HostfileInvalid",
        STARTUP,
        "Error, ",
        r"^Error, (?:rank \d{1,7} is already assigned to|invalid rank \()",
        ("Error, rank 1 is already assigned to n1, check x", "Error, invalid rank (9) in the"),
    ),
    Rule(
        "LauncherOptionInvalid",
        STARTUP,
        "is not recognized",
        r"^The specified [\w -]{1,40} (?:policy|directive|modifier) is not recognized",
        ("The specified mapping policy is not recognized:",),
    ),
    # The lines of one message can be broken anywhere.
    Rule(
        "LauncherOptionInvalid",
        STARTUP - 1,
        "that a parameter given to a command line",
        examples=("Open MPI has detected that a parameter given to a command line",),
    ),
    Rule(
        "LauncherOptionInvalid",
        STARTUP,
        "mpiexec@",
        rf"{_HYDRA}.{{0,200}}?(?:[Ii]nvalid rmk|unrecognized (?:launcher|RMK|sort order|pattern|"
        r"directive)|invalid (?:universe size|tree width|number)|duplicate (?:host|setting|user)|"
        r"unable to open (?:gtool )?config file|please specify ppn|is not specified|"
        r"[Ii]nvalid (?:value|argument|syntax)|error parsing port range|No executable provided)",
        (
            "[mpiexec@l] HYDT_bsci_init (bootstrap/bsci_init.c:162): unrecognized launcher: x",
            "[mpiexec@l] unrecognized RMK bogus",
            "[mpiexec@l] Error: -gtool argument is not specified",
        ),
    ),
    *said(
        "LauncherOptionInvalid",
        STARTUP,
        "No executable provided. Try -h for usages",
        "Missing executable. Try -h for usages",
        "no executable specified",
        "process count should be > 0",
        "Env value and executable are not specified",
        "but the specified file was not found or could not be",
    ),
    Rule(
        "LauncherOptionInvalid",
        STARTUP - 3,
        "error parsing input array",
        rf"{_HYDRA}.{{1,300}}error parsing input array",
        ("[mpiexec@l] parse_args (mpiexec/get_parameters.c:318): error parsing input array",),
    ),
    # --- binding
    *said(
        "BindingImpossible",
        STARTUP,
        "result in binding more",
        "binding more processes than cpus",
        "was not able to set the process affinity",
        "A request was made to bind that would",
        "A request was made to bind to",
        "An appropriate target could not be found on node",
        "we found no available cpus on the following node",
        "does NOT support binding",
        "No bindable objects of the specified type",
        "than there are cpus in a",
        "bound to CPUs in more than one package",
        "policy was provided that is not supported in combination",
        "but not enough cpus are available",
        "An insufficient number of CPUs was found",
        "The request to bind processes",
        "tried to bind a new process, but",
        "tried to bind memory for a new process",
        "to assign hardware locations to processes",
        "to bind a given number of cpus to each process",
        "A request for multiple cpus-per-proc was given",
        "No objects of the specified type were found on",
        "attempted to bind to resources already allocated",
        "A slot list was provided that exceeds the boundaries",
        "An attempt to set processor affinity has failed",
        "to meet the requested binding action",
        "hwloc_set_cpubind failed",
        "HWLOC failure binding process",
    ),
    *said("BindingImpossible", STARTUP - 1, "Your job failed to map"),
    Rule(
        "BindingImpossible",
        STARTUP,
        "error",
        rf"{_HYDRA}.{{0,200}}?(?:error binding (?:to|with)|error finding (?:bind|map) objects|bind "
        r"process failed|error (?:setting|handling) (?:bind|mapp)ing)",
        (
            "[proxy:0:0@n1] HYDT_topo_hwloc_init (tools/topo/hwloc.c:543): error binding to core",
            "[proxy:0:0@n1] handle_bitmap_binding (tools/topo/hwloc.c:3): error finding bind "
            "objects",
        ),
    ),
)

DETAILS: Final = (
    Detail(
        "BindingImpossible", "Node: ", rf"^\s{{1,8}}Node:\s{{1,16}}{HOST}$", "   Node:        n1"
    ),
)
BOILERPLATE: Final[tuple[str, ...]] = ()
NOISE: Final[tuple[str, ...]] = ()
