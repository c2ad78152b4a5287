#!/bin/sh
# The launcher's first process: holds a control channel to every host of the job, runs the job's
# command untouched as its child, and ends it where it can be proven that it will not end by itself.
#
#   launch COMMAND [ARGUMENT...]
#
#   MPI_TRAINER_SCRATCH      see prepare, which this runs where no init container has
#   MPI_TRAINER_TERMINATION  where the summary goes (/dev/termination-log)
#   MPI_TRAINER_STDOUT       set here, for the mpiexec shim: the pod's own standard output, so that
#                            only lines for the log are marked with their rank
#
# Guarantee: the command starts when every worker has answered. A worker whose name is not known, or
# whose port nobody listens on, does not run yet: how long that may take is the controller's to say,
# and never the agent's. The command gets its arguments, descriptors and
# signals as if this were not here, and its exit code is ours, unless we ended it: then the code is
# one of verdict.sh. Where the folder of this script names no hosts, the command replaces it.
# Danger: everything comes in through one pipe, because a POSIX shell can wait for one thing only;
# every writer must write whole lines of less than 4096 bytes.

# As the job has them: some may be called as ours are, and the command is to get its own.
MPI_TRAINER_VARIABLES=$(export -p)
MPI_TRAINER_STDOUT=/proc/$$/fd/1
export MPI_TRAINER_STDOUT

if ! command -v -- "$1" >/dev/null; then
    echo "launcher: $1: command not found" >&2
    exit 127
fi
[ -r "${0%/*}/hosts" ] || exec "$@"
here=${0%/*}

scratch=${MPI_TRAINER_SCRATCH:-/run/mpi-agent}
[ -e "$scratch/prepared" ] || /bin/sh "$here/prepare" launcher || exit
wait_seconds=110 lost_seconds=20 dead_seconds=10 start_seconds=100 suspect_seconds=300 end_seconds=3
# shellcheck disable=SC1091 # rendered from the job's annotations
[ ! -r "$here/settings" ] || . "$here/settings"
# shellcheck source-path=SCRIPTDIR source=processes.sh
. "$here/processes"
# shellcheck source-path=SCRIPTDIR source=channels.sh
. "$here/channels"
# shellcheck source-path=SCRIPTDIR source=verdict.sh
. "$here/verdict"
# shellcheck source-path=SCRIPTDIR source=summary.sh
. "$here/summary"
# shellcheck source-path=SCRIPTDIR source=quiet.sh
. "$here/quiet"

MPI_TRAINER_SCRATCH=$scratch
MPI_TRAINER_RANK_DIR=$scratch/ranks
export MPI_TRAINER_SCRATCH MPI_TRAINER_RANK_DIR
ssh_program=$(command -v ssh)
run=$scratch/launch
# Exported by a job that has such a variable, it would mark all that is started here.
mt_command=MPI_TRAINER_COMMAND=$scratch

say() {
    echo "mpi-agent: $1" >&2
}

# --- the command ---------------------------------------------------------------------------------

# Not a background job: those ignore SIGINT, and so would all that the command starts. So it is one
# end of a pipeline, in a subshell that the other end kills; the shell's word about that is dropped.
# shellcheck disable=SC2216,SC2016 # the pipe carries nothing; PPID is the inner shell's
start_command() {
    exec 8>&2 9>&1 2>/dev/null
    ( {
        (
            read -r pid _ </proc/self/stat
            echo "$pid" >"$run/command"
            MPI_TRAINER_COMMAND=$scratch
            eval "$MPI_TRAINER_VARIABLES"
            find_tmp
            PATH=$MPI_TRAINER_SCRATCH/bin:$PATH
            export MPI_TRAINER_COMMAND PATH
            exec "$@" >&9 2>&8 7>&- 8>&- 9>&-
        )
        echo "command $?" >"$run/events"
    } | sh -c 'kill -KILL "$PPID"')
    exec 2>&8 8>&- 9>&-
}

# shellcheck disable=SC2317 # called by trap
forward() {
    if [ -r "$run/command" ]; then
        read -r pid <"$run/command"
        stopped=1
        kill -"$1" "$pid" 2>/dev/null || :
    else
        case $1 in TERM | INT | HUP | QUIT) finish 143 ;; esac
    fi
}

# Ends the command and all below it, and every rank.
end_command() {
    signal_marked "$mt_command" TERM || :
    for number in $numbers; do order "$number" end; done
    ending=$now
}

# What an mpirun has printed may still be on its way, where whoever called it was ended. It ends now,
# as everything does that the command has left, and its words with it. See streams.
hand_on() {
    [ -n "$(marked "MPI_TRAINER_STREAMS=$scratch")" ] || return 0
    signal_marked "$mt_command" KILL || :
    while [ -n "$(marked "MPI_TRAINER_STREAMS=$scratch")" ]; do nap; done
}

finish() {
    close_channels
    kill "$ticker" 2>/dev/null
    rm -f "$run/events"
    exit "$1"
}

# --- one line of the pipe --------------------------------------------------------------------------

tick() {
    read_now
    if [ -n "$ending" ]; then
        if [ $((now - ending)) -ge "$end_seconds" ]; then signal_marked "$mt_command" KILL || :; fi
        # Even a command that nobody can kill must not hold the job.
        [ $((now - ending)) -lt $((end_seconds + 5)) ] || code=${code:-137}
    elif [ -n "$launched" ]; then
        follow_hosts
        judge
        judge_quiet
        [ -z "$proof" ] || end_command
    fi
}

# Handles the next line; nothing where a signal came instead.
next() {
    read -r who what rest <&7 || return 0
    case $who in
        t) tick ;;
        command) code=$what ;;
        mpirun) run_begins "$what" ;;
        names) names_are "$what" ;;
        *[!0-9]*) ;;
        [0-9]*) heard "$who" "$what" "$rest" ;;
    esac
}

# --- its life ----------------------------------------------------------------------------------------

umask 077
[ ! -d "$run" ] || rm -rf "$run" "$scratch/alive"
mkdir "$run" || exit 102
mkfifo "$run/events" || exit 102
umask 022
exec 7<>"$run/events"
for signal in TERM INT HUP QUIT USR1 USR2; do
    # shellcheck disable=SC2064 # the signal of now
    trap "forward $signal" "$signal"
done
(
    exec 7>&-
    while sleep 1; do echo t; done
) >"$run/events" 2>/dev/null &
ticker=$!
read_now
launched='' ending='' code='' proof='' proved='' stopped=''
begin_story
begin_quiet
open_channels
told=$now
every=5
until all_up; do
    next
    [ "$who" = t ] || continue
    judge_wait
    if [ -n "$proof" ]; then
        say "$proof $proved: $(missing_workers)"
        summary
        finish 103
    fi
    if [ $((now - told)) -ge "$every" ]; then
        told=$now
        [ "$every" -ge 60 ] || every=$((every + every / 2))
        say "waiting for $(missing_workers)"
    fi
done
note_alive
launched=$now
start_command "$@"
while [ -z "$code" ]; do next; done
hand_on
collect
[ -z "$proof" ] || say "ended the command: $proof $proved"
summary
finish "$(exit_code)"
