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
# Two files a rank. The first is complete when it has its last key, the second is renamed into
# place (names with a leading dot are unfinished and to be ignored). WRAPPER is this shell's pid, so that several launches
# from one script never share a name:
#
#   RANK.HOST.WRAPPER.SECONDS.start      RANK.HOST.WRAPPER.SECONDS.end
#
# One `key=value` a line:
#
#   rank     number in the world                     both
#   size     ranks in the world; empty if unknown    both
#   world    which run of mpirun; empty if unknown   both
#   by       hydra or openmpi: who started it        both
#   host     host name                               both
#   pid      process id of the rank itself           both
#   wrapper  process id of this shell                both
#   parent   process id of the MPI daemon above it   both
#   start    start time, seconds since the epoch     both
#   end      end time, seconds since the epoch       end only
#   at       end time, 1/100 s since the boot        end only
#   oom      processes that the kernel killed here   end only
#            for memory while the rank ran
#   orphan   1 where the MPI daemon was gone then    end only
#   status   exit status                             end only, or
#   signal   number of the signal that ended it      end only
#
# A rank that runs Python finds our `sitecustomize.py` on its path, which
# leaves a third file, RANK.HOST.WRAPPER.SECONDS.raised, when the program ends by an
# exception or by sys.exit with a failure: such a rank can wait in MPI_Finalize for ever;
# and a fourth, .foreign, when the program has used another MPI than the one that started it.
#
# Where MPI_TRAINER_KEEP_WORDS is set, what the rank says on its standard error goes through a keeper
# in a session of its own, which outlives a kill of the group and leaves the last of it in
# .RANK.HOST.WRAPPER.SECONDS.words.
#
# Danger: a start without an end means that the wrapper was killed too (SIGKILL to the
# group, or a lost host), not that the rank still runs. A shell reports death by INT,
# PIPE or TERM exactly like the exit statuses 130, 141 and 143, so those count as signals.

dir=${MPI_TRAINER_WORKER_RANK_DIR:-${MPI_TRAINER_RANK_DIR-}}
rank=${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${PMI_RANK-}}}
size=${OMPI_COMM_WORLD_SIZE:-${PMI_SIZE-}}
world=${PMIX_NAMESPACE:-${MPI_TRAINER_RUN-}}
by=hydra
[ -z "${OMPI_COMM_WORLD_RANK-}${PMIX_RANK-}" ] || by=openmpi

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
# Sets `seconds` to the time of now; `prepare` has left the boot's, which spares a process.
boot=
[ ! -r "${dir%/*}/boot" ] || read -r boot <"${dir%/*}/boot"
read_seconds() {
    uptime=0.00
    [ ! -r /proc/uptime ] || read -r uptime _ </proc/uptime
    if [ -n "$boot" ]; then
        seconds=$((boot + ${uptime%.*}))
    else
        seconds=$(date +%s)
    fi
}
read_seconds
start=$seconds
name=$rank.$host.$$.$start
printf '' 2>/dev/null >"$dir/.$name.end" || exec "$@"

# Sets `kills` to how many processes of this container the kernel has killed for memory.
count_kills() {
    kills=0
    [ -n "$memory_events" ] || return 0
    while read -r key value; do
        [ "$key" != oom_kill ] || kills=$value
    done <"$memory_events"
}

# The file that counts them, of either version of control groups; see processes.sh.
memory_events=
while IFS=: read -r _ controllers path; do
    case ,$controllers, in
        ,,) places="/sys/fs/cgroup /sys/fs/cgroup$path" file=memory.events ;;
        *,memory,*) places="/sys/fs/cgroup/memory /sys/fs/cgroup/memory$path" file=memory.oom_control ;;
        *) continue ;;
    esac
    for place in $places; do [ ! -r "$place/$file" ] || memory_events=$place/$file; done
done 2>/dev/null </proc/self/cgroup
count_kills
kills_before=$kills

agent=${0%/*}
if [ -r "$agent/sitecustomize.py" ]; then
    PYTHONPATH=$agent${PYTHONPATH:+:$PYTHONPATH}
    MPI_TRAINER_RECORD=$dir/$name
    export PYTHONPATH MPI_TRAINER_RECORD
fi

# One call, so that it is one write.
about() {
    printf 'rank=%s\nsize=%s\nworld=%s\nby=%s\nhost=%s\npid=%s\nwrapper=%s\nparent=%s\nstart=%s\n' \
        "$rank" "$size" "$world" "$by" "$host" "$pid" "$$" "$PPID" "$start"
}

# Called in the process that becomes the rank, so that it can read its own pid:
# $$ stays the wrapper's in a subshell, while /proc/self is whoever opens it.
# shellcheck disable=SC2317 # called inside eval
record_start() {
    pid=
    [ -r /proc/self/stat ] && read -r pid _ </proc/self/stat
    [ -n "$pid" ] || pid=$(exec sh -c 'echo "$PPID"')
    about >"$dir/$name.start"
}

# Every name is open before the rank begins, which waits for the reader of its pipe.
words=
keep_words() {
    words=$dir/.$name
    # shellcheck disable=SC2016 # the keeper's own
    setsid sh -c '
        trap "" PIPE HUP INT TERM
        case ${PMI_FD-} in [3-9]) eval "exec $PMI_FD>&-" ;; esac
        tail -c 2000 >"$0.words" <"$0.last" &
        exec 3>"$0.last"
        exec tee /dev/fd/3 <"$0.said" >&2
    ' "$words" </dev/null >/dev/null &
}
if [ -n "${MPI_TRAINER_KEEP_WORDS-}" ] && command -v setsid >/dev/null &&
    mkfifo -m 600 "$dir/.$name.said" "$dir/.$name.last" 2>/dev/null; then
    keep_words
fi

# Signals of the launcher go to the process group and so reach the rank without help; the
# wrapper only has to outlive it. A handler, unlike SIG_IGN, is not inherited.
trap : HUP INT QUIT USR1 USR2 ALRM TERM VTALRM PROF XCPU

# In the foreground: a background child would lose its stdin and ignore INT and QUIT.
# The shell writes "Killed" and the like to its stderr, here the unfinished end record:
# that is how a signal is told from an exit status above 128. `code=$?` stays inside the
# braces: around a lone subshell dash and busybox would redirect the child only.
code=
to="&$spare"
# shellcheck disable=SC2016 # for the eval
[ -z "$words" ] || to='"$words.said"'
eval '{ ( record_start; exec "$@" 2>'"$to $spare>&-"' ); code=$?; } '"$spare>&2"' 2>"$dir/.$name.end"'
[ -z "$words" ] || rm -f "$words.said" "$words.last" "$words.words"

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
read_seconds
count_kills
above=$PPID
[ ! -r "/proc/$$/stat" ] || read -r _ _ _ above _ <"/proc/$$/stat"
orphan=0
[ "$above" = "$PPID" ] || orphan=1
{
    {
        about
        printf 'end=%s\nat=%s\noom=%s\norphan=%s\n%s=%s\n' "$seconds" \
            "${uptime%.*}${uptime#*.}" "$((kills - kills_before))" "$orphan" \
            "$how" "${signal:-$code}"
    } >"$dir/.$name.end" && mv -f "$dir/.$name.end" "$dir/$name.end"
} 2>/dev/null

if [ -n "$signal" ]; then
    # shellcheck disable=SC3045 # the core file, if any, is the rank's; every sh we meet has -c
    ulimit -c 0
    trap - HUP INT QUIT USR1 USR2 ALRM TERM VTALRM PROF XCPU
    kill -"$signal" $$
fi
exit "$code"
