#!/bin/sh
# The launcher's first process: starts the job's command and notes where its output goes.
#
#   launch.sh COMMAND [ARGUMENT...]
#
# MPI_TRAINER_STDOUT tells the mpiexec shim which standard output is the pod's own, so that only
# lines for the log are marked with their rank, and never what a script captures or redirects.

MPI_TRAINER_STDOUT=$(readlink "/proc/$$/fd/1")
export MPI_TRAINER_STDOUT

if ! command -v -- "$1" >/dev/null; then
    echo "launcher: $1: command not found" >&2
    exit 127
fi
exec "$@"
