#!/bin/sh
# A worker's program: an sshd for the job's launcher, as whatever user this is.
#
#   worker
#
#   MPI_TRAINER_SCRATCH  see prepare, which this runs where no init container has
#   MPI_TRAINER_SSHD     sshd's path; else it is looked for
#
# Guarantee: sessions get this container's environment from a file that only this user can read;
# nothing of it is ever an argument. SIGTERM reaches the ranks, which have the `grace_seconds` of
# `settings` to end. When sshd ends, so does the worker, with its code. Exit code 100: there is no
# sshd.

# As the container has them: some may be called as ours are, and sessions are to get their own.
MPI_TRAINER_VARIABLES=$(export -p)
here=${0%/*}
# shellcheck source-path=SCRIPTDIR source=processes.sh
. "$here/processes"
grace_seconds=25
# shellcheck source=/dev/null # bounds as assignments
[ ! -r "$here/settings" ] || . "$here/settings"
scratch=${MPI_TRAINER_SCRATCH:=/run/mpi-agent}
ssh=$scratch/ssh

[ -e "$scratch/prepared" ] || /bin/sh "$here/prepare" worker || exit
umask 077

sshd=${MPI_TRAINER_SSHD-}
[ -n "$sshd" ] || sshd=$(command -v sshd)
for place in /usr/sbin/sshd /usr/local/sbin/sshd /usr/lib/ssh/sshd; do
    [ -n "$sshd" ] || [ ! -x "$place" ] || sshd=$place
done
if [ -z "$sshd" ]; then
    cat >&2 <<'END'
mpi-agent: this image has no sshd, and MPI starts its ranks on a worker over SSH.
mpi-agent: add it to the image: openssh-server (Debian, Ubuntu, Fedora, UBI) or openssh (Alpine).
END
    exit 100
fi

# The user's umask and home are the ranks' as well.
[ ! -r "$scratch/home-is" ] || read -r HOME <"$scratch/home-is"
export HOME
(
    set -- "$HOME"
    eval "$MPI_TRAINER_VARIABLES"
    HOME=$1
    export HOME
    find_tmp
    unset PWD OLDPWD SHLVL _ MPI_TRAINER_SSHD MPI_TRAINER_SSH_ADDRESS MPI_TRAINER_SSH_PORT
    export -p
) >"$scratch/env" || exit 102
umask 022
# Where root's sshd wants to be locked in.
if [ ! -d /run/sshd ] && [ -w /run ]; then mkdir /run/sshd 2>/dev/null || :; fi

# Prints what comes to the pipe at $1: the number of sshd, later how it ended.
[ -p "$scratch/sshd.end" ] || mkfifo "$scratch/sshd.end" || exit 102

# sshd must not be a background job: those ignore SIGINT, and so would every rank. So it is one end
# of a pipeline, in a subshell that the other end kills.
# shellcheck disable=SC2216,SC2016 # the pipe carries nothing; PPID is the inner shell's
start_sshd() {
    exec 8>&2 2>/dev/null
    ( { 
        ( read -r pid _ </proc/self/stat; echo "$pid" >"$scratch/sshd.pid"
          exec "$sshd" -D -e -f "$ssh/sshd_config" 2>&8 8>&- )
        echo $? >"$scratch/sshd.end"
    } | sh -c 'kill -KILL "$PPID"' )
    exec 2>&8 8>&-
}

# shellcheck disable=SC2317 # called by trap
stop() {
    trap '' TERM INT
    echo "mpi-agent: stopping; ranks have $grace_seconds s to end" >&2
    end_marked "MPI_TRAINER_SESSION=$scratch" "$grace_seconds"
    kill -TERM "$(cat "$scratch/sshd.pid")" 2>/dev/null
    exit 143
}
trap stop TERM INT
start_sshd
exec 7<>"$scratch/sshd.end"
code=
until [ -n "$code" ]; do read -r code <&7 || :; done
how="exit code $code"
[ "$code" -le 128 ] || how="signal $((code - 128))"
echo "mpi-agent: sshd ended with $how" >&2
exit "$code"
