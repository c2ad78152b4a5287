#!/bin/sh
# Every SSH session on a worker starts here: the container's environment, then what was asked for.
#
#   session SCRATCH        (sshd's ForceCommand; the words are in SSH_ORIGINAL_COMMAND)
#
# `sh -c` is what sshd itself does with a command; the words come from whoever holds the job's key,
# and pass through unchanged but for one name, below. It starts at the root, because Open MPI reads a .profile from where a
# session begins, and a user's own is no part of the job.

if [ -r "$1/env" ]; then
    # shellcheck disable=SC1091 # written by worker
    . "$1/env"
fi
cd /
MPI_TRAINER_SCRATCH=$1
MPI_TRAINER_WORKER_RANK_DIR=$1/ranks
export MPI_TRAINER_SCRATCH MPI_TRAINER_WORKER_RANK_DIR
case $SSH_ORIGINAL_COMMAND in
    "mpi-agent-watch "*) exec "${0%/*}/watch" "${SSH_ORIGINAL_COMMAND#* }" ;;
    "mpi-agent-input "*[!-.A-Za-z0-9_]*) ;;
    "mpi-agent-input "*) exec cat >"$1/ranks/.${SSH_ORIGINAL_COMMAND#* }.input" ;;
esac
# What the job starts here can be found again by this, however it detaches itself.
MPI_TRAINER_SESSION=$1
export MPI_TRAINER_SESSION
case $SSH_ORIGINAL_COMMAND in
    *orted* | *prted* | *_proxy*) ;;
    *) exec /bin/sh -c "${SSH_ORIGINAL_COMMAND:-exec /bin/sh}" ;;
esac
# Hydra's proxies call the launcher back by its name and fail at once where nobody knows it yet: the
# name of a pod comes with its address, and that takes a moment to go round. They are given the
# address instead, since the next server asked may not have heard of it. In a subshell, whose
# variables are not the daemon's.
mt_command=$(
    command=$SSH_ORIGINAL_COMMAND option='' found=''
    case $command in
        *" --control-port "*) option=--control-port ;;
        *" --upstream-host "*) option=--upstream-host ;;
    esac
    launcher=${command#*" $option "}
    launcher=${launcher%%[: ]*}
    case ${option:+$launcher} in
        '' | *[!-.A-Za-z0-9]*) ;;
        *[!.0-9]*)
            left=30
            while command -v getent && ! found=$(getent hosts "$launcher") && [ "$left" -gt 0 ]; do
                left=$((left - 1))
                sleep 1
            done >/dev/null
            found=${found%%[!.0-9]*}
            case $found in
                *.*.*.*)
                    command="${command%%" $option $launcher"*} $option $found${command#*" $option $launcher"}"
                    ;;
            esac
            ;;
    esac
    printf '%s' "$command"
)
# An MPI daemon that does not start is worth a note: some launchers never say so.
/bin/sh -c "$mt_command"
code=$?
[ "$code" = 0 ] || echo "status=$code" >"$1/ranks/$$.daemon"
exit "$code"
