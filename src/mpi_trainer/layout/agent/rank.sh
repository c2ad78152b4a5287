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
#   input    whose standard input it waits for:      both; rank 0 only, and where there is one
#            RUN/NAME, the pipe being .NAME.input
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
# .RANK.HOST.WRAPPER.SECONDS.words, and `mpi-agent kept` below it once that is all.
#
# OMPI_MPI_TRAINER_INPUT says what ranks read: `none`, or the number of a run of mpirun whose standard
# input is rank 0's, see streams; every other rank reads nothing. Unset, they read what came.
#
# OMPI_MPI_TRAINER_WORD is set where Open MPI 4 marks the ranks' lines: the word with which `relay`, a
# copier between the rank and Open MPI, makes short ones longer. The wrapper ends when what the rank
# wrote has gone on, in the same moment as the rank where nothing did.
#
# Names of variables begin with mt_: one that the job has too would reach its program changed.
#
# Danger: a start without an end means that the wrapper was killed too (SIGKILL to the
# group, or a lost host), not that the rank still runs. A shell reports death by INT,
# PIPE or TERM exactly like the exit statuses 130, 141 and 143, so those count as signals.

mt_dir=${MPI_TRAINER_WORKER_RANK_DIR:-${MPI_TRAINER_RANK_DIR-}}
mt_rank=${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${PMI_RANK-}}}
mt_size=${OMPI_COMM_WORLD_SIZE:-${PMI_SIZE-}}
mt_world=${PMIX_NAMESPACE:-${MPI_TRAINER_RUN-}}
mt_by=hydra
[ -z "${OMPI_COMM_WORLD_RANK-}${PMIX_RANK-}" ] || mt_by=openmpi

case $mt_rank in '' | *[!0-9]*) exec "$@" ;; esac
if [ -z "$mt_dir" ] || [ ! -d "$mt_dir" ] || [ ! -w "$mt_dir" ]; then exec "$@"; fi

# Descriptor numbers belong to the MPI library (PMI_FD): take one that is closed.
mt_spare=
for mt_fd in 9 8 7 6 5 4 3; do
    [ -e "/dev/fd/$mt_fd" ] || { mt_spare=$mt_fd && break; }
done
[ -n "$mt_spare" ] || exec "$@"

mt_host=
[ -r /proc/sys/kernel/hostname ] && read -r mt_host </proc/sys/kernel/hostname
[ -n "$mt_host" ] || mt_host=$(hostname 2>/dev/null) || mt_host=unknown
# Sets `mt_seconds` to the time of now; `prepare` has left the boot's, which spares a process.
mt_boot=
[ ! -r "${mt_dir%/*}/boot" ] || read -r mt_boot <"${mt_dir%/*}/boot"
read_seconds() {
    mt_uptime=0.00
    [ ! -r /proc/uptime ] || read -r mt_uptime _ </proc/uptime
    if [ -n "$mt_boot" ]; then
        mt_seconds=$((mt_boot + ${mt_uptime%.*}))
    else
        mt_seconds=$(date +%s)
    fi
}
read_seconds
mt_start=$mt_seconds
mt_name=$mt_rank.$mt_host.$$.$mt_start
printf '' 2>/dev/null >"$mt_dir/.$mt_name.end" || exec "$@"

# Sets `mt_kills` to how many processes of this container the kernel has killed for memory.
count_kills() {
    mt_kills=0
    [ -n "$mt_memory_events" ] || return 0
    while read -r mt_key mt_value; do
        [ "$mt_key" != oom_kill ] || mt_kills=$mt_value
    done <"$mt_memory_events"
}

# The file that counts them, of either version of control groups; see processes.sh.
mt_memory_events=
while IFS=: read -r _ mt_controllers mt_path; do
    case ,$mt_controllers, in
        ,,) mt_places="/sys/fs/cgroup /sys/fs/cgroup$mt_path" mt_file=memory.events ;;
        *,memory,*) mt_places="/sys/fs/cgroup/memory /sys/fs/cgroup/memory$mt_path" mt_file=memory.oom_control ;;
        *) continue ;;
    esac
    for mt_place in $mt_places; do [ ! -r "$mt_place/$mt_file" ] || mt_memory_events=$mt_place/$mt_file; done
done 2>/dev/null </proc/self/cgroup
count_kills
mt_kills_before=$mt_kills

mt_agent=${0%/*}
if [ -r "$mt_agent/sitecustomize.py" ]; then
    PYTHONPATH=$mt_agent${PYTHONPATH:+:$PYTHONPATH}
    MPI_TRAINER_RECORD=$mt_dir/$mt_name
    export PYTHONPATH MPI_TRAINER_RECORD
fi

# The rank opens its pipe after its record is written, and waits there for the other end.
mt_input='' mt_from=''
case ${OMPI_MPI_TRAINER_INPUT-}:$mt_rank in
    :*) ;;
    *[!0-9]*:0 | *:[1-9]*) exec </dev/null ;;
    *)
        if mkfifo -m 600 "$mt_dir/.$mt_name.input" 2>/dev/null; then
            mt_input=$OMPI_MPI_TRAINER_INPUT/$mt_name
            # shellcheck disable=SC2016 # read by eval
            mt_from='<"$mt_dir/.$mt_name.input"'
        else
            exec </dev/null
        fi
        ;;
esac
unset OMPI_MPI_TRAINER_INPUT

# One call, so that it is one write.
about() {
    printf 'rank=%s\nsize=%s\nworld=%s\nby=%s\nhost=%s\npid=%s\nwrapper=%s\nparent=%s\n%sstart=%s\n' \
        "$mt_rank" "$mt_size" "$mt_world" "$mt_by" "$mt_host" "$mt_pid" "$$" "$PPID" \
        "${mt_input:+input=$mt_input$mt_newline}" "$mt_start"
}
mt_newline='
'

# Called in the process that becomes the rank, so that it can read its own pid:
# $$ stays the wrapper's in a subshell, while /proc/self is whoever opens it.
# shellcheck disable=SC2317 # called inside eval
record_start() {
    mt_pid=
    [ -r /proc/self/stat ] && read -r mt_pid _ </proc/self/stat
    [ -n "$mt_pid" ] || mt_pid=$(exec sh -c 'echo "$PPID"')
    about >"$mt_dir/$mt_name.start"
    [ -z "$mt_input" ] || tell_watch
}

# Whoever watches here is to look at once. Opened for both, so that it never waits for a reader.
# shellcheck disable=SC2317 # called inside eval
tell_watch() {
    for mt_watch in "${mt_dir%/*}"/watch.[0-9]*; do
        [ ! -p "$mt_watch" ] || echo "o scan" 1<>"$mt_watch"
    done
}

# The rank begins when its keeper has every name open. The pipe is open for both ways before there is
# a keeper, so that this never waits for a wrapper that is killed meanwhile: mpirun waits for the end
# of the descriptor that it holds.
mt_words=
keep_words() {
    mt_words=$mt_dir/.$mt_name
    eval "exec $mt_spare<>\"\$mt_words.said\""
    # shellcheck disable=SC2016 # the keeper's own
    setsid sh -c '
        trap "" PIPE HUP INT TERM
        case ${PMI_FD-} in [3-9]) eval "exec $PMI_FD>&-" ;; esac
        exec <"/dev/fd/$1" >"$0.words"
        eval "exec $1>&-"
        exec 3<>"$0.ready"
        tee /dev/fd/3 3>&1 >&2 | tail -c 2000
        printf "\nmpi-agent kept"
    ' "$mt_words" "$mt_spare" </dev/null >/dev/null &
    eval "exec $mt_spare>\"\$mt_words.said\""
    : >"$mt_words.ready"
}
if [ -n "${MPI_TRAINER_KEEP_WORDS-}" ] && command -v setsid >/dev/null &&
    mkfifo -m 600 "$mt_dir/.$mt_name.said" "$mt_dir/.$mt_name.ready" 2>/dev/null; then
    keep_words
fi

# The program takes the place of `relay`, so that the pid in the record is its own.
mt_relay='' mt_through=''
if [ -n "${OMPI_MPI_TRAINER_WORD-}" ]; then
    # shellcheck disable=SC2034 # read by eval
    mt_word=$OMPI_MPI_TRAINER_WORD
    if command -v python3 >/dev/null &&
        mkfifo -m 600 "$mt_dir/.$mt_name.ended" "$mt_dir/.$mt_name.drained" 2>/dev/null; then
        mt_relay=$mt_dir/.$mt_name
        # shellcheck disable=SC2016 # read by eval
        mt_through='python3 -I -S "$mt_agent/relay" "$mt_word" "$mt_relay.ended" "$mt_relay.drained" "$0"'
    else
        echo "mpi-agent: no python3 on $mt_host: Open MPI 4 may drop lines of fewer than 15 bytes" >&2
    fi
fi
unset OMPI_MPI_TRAINER_WORD

# Waits until the rank's copier has handed on all that the rank wrote. Each pipe is open for both ways
# first, so that this waits for no copier that is gone.
drain() {
    : 1<>"$mt_relay.ended"
    eval "exec $mt_spare<>\"\$mt_relay.drained\""
    {
        eval "exec $mt_spare>&-"
        mt_got=129
        while [ "$mt_got" -gt 128 ]; do
            read -r mt_key
            mt_got=$?
        done
    } <"$mt_relay.drained"
    rm -f "$mt_relay.ended" "$mt_relay.drained"
}

# Signals of the launcher go to the process group and so reach the rank without help; the
# wrapper only has to outlive it. A handler, unlike SIG_IGN, is not inherited.
trap : HUP INT QUIT USR1 USR2 ALRM TERM VTALRM PROF XCPU

# In the foreground: a background child would lose its stdin and ignore INT and QUIT.
# The shell writes "Killed" and the like to its stderr, here the unfinished end record:
# that is how a signal is told from an exit status above 128. `mt_code=$?` stays inside the
# braces: around a lone subshell dash and busybox would redirect the child only.
mt_code=
mt_open="$mt_spare>&2"
[ -z "$mt_words" ] || mt_open=
eval '{ ( record_start; exec '"$mt_through"' "$@" '"$mt_from"' 2>'"&$mt_spare $mt_spare>&-"' ); mt_code=$?; } '"$mt_open"' 2>"$mt_dir/.$mt_name.end"'
eval "exec $mt_spare>&-"

mt_signal=
mt_how=status
if [ "$mt_code" -gt 128 ] && [ "$mt_code" -le 192 ]; then
    case $((mt_code - 128)) in
        2 | 13 | 15) mt_signal=$((mt_code - 128)) ;;
        *) [ ! -s "$mt_dir/.$mt_name.end" ] || mt_signal=$((mt_code - 128)) ;;
    esac
    [ -z "$mt_signal" ] || mt_how=signal
fi

mt_pid=
if [ -r "$mt_dir/$mt_name.start" ]; then
    while IFS='=' read -r mt_key mt_value; do
        [ "$mt_key" != pid ] || mt_pid=$mt_value
    done <"$mt_dir/$mt_name.start"
fi
read_seconds
count_kills
mt_above=$PPID
[ ! -r "/proc/$$/stat" ] || read -r _ _ _ mt_above _ <"/proc/$$/stat"
mt_orphan=0
[ "$mt_above" = "$PPID" ] || mt_orphan=1

# A rank that ends all others may be killed with them, or crash in doing so (MPICH 5): only its words
# tell it from the others, and the keeper has them a moment after its end.
if [ -n "$mt_words" ] && [ -n "$mt_signal" ]; then
    mt_try=0
    until grep -qs '^mpi-agent kept' "$mt_words.words" || [ "$mt_try" -eq 10 ]; do
        sleep 0.1 2>/dev/null || sleep 1
        mt_try=$((mt_try + 1))
    done
fi

{
    {
        about
        printf 'end=%s\nat=%s\noom=%s\norphan=%s\n%s=%s\n' "$mt_seconds" \
            "${mt_uptime%.*}${mt_uptime#*.}" "$((mt_kills - mt_kills_before))" "$mt_orphan" \
            "$mt_how" "${mt_signal:-$mt_code}"
    } >"$mt_dir/.$mt_name.end" && mv -f "$mt_dir/.$mt_name.end" "$mt_dir/$mt_name.end"
} 2>/dev/null
[ -z "$mt_input" ] || rm -f "$mt_dir/.$mt_name.input"
# Not before: who is killed in between has only its words to speak for it.
if [ -n "$mt_words" ]; then
    rm -f "$mt_words.said" "$mt_words.ready"
    [ -n "$mt_signal" ] || rm -f "$mt_words.words"
fi
[ -z "$mt_relay" ] || drain

if [ -n "$mt_signal" ]; then
    # shellcheck disable=SC3045 # the core file, if any, is the rank's; every sh we meet has -c
    ulimit -c 0
    trap - HUP INT QUIT USR1 USR2 ALRM TERM VTALRM PROF XCPU
    kill -"$mt_signal" $$
fi
exit "$mt_code"
