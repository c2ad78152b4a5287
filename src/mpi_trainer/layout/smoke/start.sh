#!/bin/sh
# The launcher's command of a smoke run: names, SSH, versions, the start of ranks, measurements.
#
#   sh -c THIS check MPIRUN ROOT PROGRAM [OPTION...]
#
#   MPIRUN   how the job starts ranks; the OPTIONs are its
#   ROOT     `allow` where no job's command is known that would allow root by itself
#   PROGRAM  the text of measure.py
#
# Guarantee: what was found stands in lines that begin with `mpi-trainer-check `, which
# `check/report.py` reads; whatever cannot be tried is left out or said. Ends with the code of the
# first step that failed.

mpirun=$1 root=$2 program=$3
shift 3
fact() { printf 'mpi-trainer-check %s\n' "$*"; }

own=$(uname -n)
hosts=
while read -r host _; do
    host=${host%%:*}
    case $host in '' | '#'*) ;; *) hosts="$hosts $host" ;; esac
done <"${MPI_TRAINER_HOSTFILE:-/etc/mpi/hostfile}"

code=0
if command -v getent >/dev/null; then
    for host in $hosts; do
        if address=$(getent hosts "$host"); then
            fact "name $host ${address%% *}"
        else
            fact "name $host -" && code=1
        fi
    done
fi
[ "$code" = 0 ] || exit 1

version() { "$@" 2>/dev/null </dev/null | grep -im1 'open mpi\|version' | tr -s ' '; }
if command -v "$mpirun" >/dev/null; then
    found=$(version "$mpirun" --version)
    fact "mpirun $own $found"
else
    fact "mpirun $own -"
    echo "$mpirun: not found" >&2
    exit 127
fi
case "$root $(id -u) ${OMPI_ALLOW_RUN_AS_ROOT-}" in
    "allow 0 ")
        case $found in *"Open MPI"*) fact root ;; esac
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
        ;;
esac

arguments=${OMPI_MCA_plm_rsh_args-}
arguments=${arguments:-${HYDRA_LAUNCHER_EXTRA_ARGS-}}
arguments=${arguments:-${I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS-}}
if command -v ssh >/dev/null; then
    for host in $hosts; do
        [ "${host%%.*}" != "$own" ] || continue
        # shellcheck disable=SC2086 # words, as MPI itself takes them
        ssh $arguments "$host" true </dev/null
        status=$?
        fact "ssh $host $status"
        [ "$status" = 0 ] || code=$status
        # shellcheck disable=SC2086
        [ "$status" != 0 ] || fact "mpirun $host $(version ssh $arguments "$host" "$mpirun" --version)"
    done
fi
[ "$code" = 0 ] || exit "$code"

# shellcheck disable=SC2016 # the ranks' own variables
"$mpirun" "$@" -n 2 sh -c \
    'echo "mpi-trainer-check rank ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${PMIX_RANK:-?}}} $(uname -n)"' \
    </dev/null
code=$?
fact "start $code"
[ "$code" = 0 ] || exit "$code"

python=
for name in python3 python; do
    if [ -z "$python" ] && "$name" -c 'import mpi4py' 2>/dev/null; then python=$name; fi
done
if [ -z "$python" ]; then
    fact "unmeasured the image has no Python with mpi4py"
    exit 0
fi
"$mpirun" "$@" -n 2 "$python" -c "$program" </dev/null
code=$?
fact "measure $code"
exit "$code"
