#!/bin/sh
# Wraps one MPI rank and leaves a record of its start and its end.
#
#   rank.sh PROGRAM [ARGUMENT...]
#
# The rank runs as the child of this shell, in the same process group, with every
# descriptor as it came. The shell then ends as the rank ended: by the same signal, or
# with the same status. When MPI_TRAINER_RANK_DIR is unset or not writable, or no rank
# number is known, the program replaces this shell and nothing is written.
#
# MPI_TRAINER_WORKER_RANK_DIR, set in workers only, wins: Hydra gives every rank the
# launcher's variables, and where pods share their files the launcher's directory is another.
#
# Two files a rank, both renamed into place when complete (names with a leading dot are
# unfinished and to be ignored). WRAPPER is this shell's pid, so that several launches
# from one script never share a name:
#
#   RANK.HOST.WRAPPER.SECONDS.start      RANK.HOST.WRAPPER.SECONDS.end
#
# One `key=value` a line:
#
#   rank    number in the world                     both
#   size    ranks in the world; empty if unknown    both
#   host    host name                               both
#   pid     process id of the rank itself           both
#   start   start time, seconds since the epoch     both
#   end     end time, seconds since the epoch       end only
#   status  exit status                             end only, or
#   signal  number of the signal that ended it      end only
#
# Danger: a start without an end means that the wrapper was killed too (SIGKILL to the
# group, or a lost host), not that the rank still runs. A shell reports death by INT,
# PIPE or TERM exactly like the exit statuses 130, 141 and 143, so those count as signals.

dir=${MPI_TRAINER_WORKER_RANK_DIR:-${MPI_TRAINER_RANK_DIR-}}
rank=${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${PMI_RANK-}}}
size=${OMPI_COMM_WORLD_SIZE:-${PMI_SIZE-}}

case $rank in '' | *[!0-9]*) exec "$@" ;; esac
if [ -z "$dir" ] || [ ! -d "$dir" ] || [ ! -w "$dir" ]; then exec "$@"; fi

# Descriptor numbers belong to the MPI library (PMI_FD): take one that is closed.
spare=
for fd in 9 8 7 6 5 4 3; do
    [ -e "/dev/fd/$fd" ] || { spare=$fd && break; }
done
[ -n "$spare" ] || exec "$@"

host=
[ -r /proc/sys/kernel/hostname ] && read -r host </proc/sys/kernel/hostname
[ -n "$host" ] || host=$(hostname 2>/dev/null) || host=unknown
start=$(date +%s)
name=$rank.$host.$$.$start
printf '' 2>/dev/null >"$dir/.$name.end" || exec "$@"

# Called in the process that becomes the rank, so that it can read its own pid:
# $$ stays the wrapper's in a subshell, while /proc/self is whoever opens it.
# shellcheck disable=SC2317 # called inside eval
record_start() {
    pid=
    [ -r /proc/self/stat ] && read -r pid _ </proc/self/stat
    [ -n "$pid" ] || pid=$(exec sh -c 'echo "$PPID"')
    printf 'rank=%s\nsize=%s\nhost=%s\npid=%s\nstart=%s\n' \
        "$rank" "$size" "$host" "$pid" "$start" >"$dir/.$name.start" &&
        mv -f "$dir/.$name.start" "$dir/$name.start"
}

# Signals of the launcher go to the process group and so reach the rank without help; the
# wrapper only has to outlive it. A handler, unlike SIG_IGN, is not inherited.
trap : HUP INT QUIT USR1 USR2 ALRM TERM VTALRM PROF XCPU

# In the foreground: a background child would lose its stdin and ignore INT and QUIT.
# The shell writes "Killed" and the like to its stderr, here the unfinished end record:
# that is how a signal is told from an exit status above 128. `code=$?` stays inside the
# braces: around a lone subshell dash and busybox would redirect the child only.
code=
eval '{ ( record_start; exec "$@" 2>&'"$spare $spare>&-"' ); code=$?; } '"$spare>&2"' 2>"$dir/.$name.end"'

signal=
how=status
if [ "$code" -gt 128 ] && [ "$code" -le 192 ]; then
    case $((code - 128)) in
        2 | 13 | 15) signal=$((code - 128)) ;;
        *) [ ! -s "$dir/.$name.end" ] || signal=$((code - 128)) ;;
    esac
    [ -z "$signal" ] || how=signal
fi

pid=
if [ -r "$dir/$name.start" ]; then
    while IFS='=' read -r key value; do
        [ "$key" != pid ] || pid=$value
    done <"$dir/$name.start"
fi
{
    printf 'rank=%s\nsize=%s\nhost=%s\npid=%s\nstart=%s\nend=%s\n%s=%s\n' \
        "$rank" "$size" "$host" "$pid" "$start" "$(date +%s)" \
        "$how" "${signal:-$code}" >"$dir/.$name.end" &&
        mv -f "$dir/.$name.end" "$dir/$name.end"
} 2>/dev/null

if [ -n "$signal" ]; then
    # shellcheck disable=SC3045 # the core file, if any, is the rank's; every sh we meet has -c
    ulimit -c 0
    trap - HUP INT QUIT USR1 USR2 ALRM TERM VTALRM PROF XCPU
    kill -"$signal" $$
fi
exit "$code"
