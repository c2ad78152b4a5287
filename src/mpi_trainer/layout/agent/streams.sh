#!/bin/sh
# Carries what mpirun reads and prints past it, where it cannot be trusted with that.
#
#   streams run PROGRAM [ARGUMENT...]    runs the mpirun PROGRAM
#   streams copy FOLDER NUMBER RUNNER [MARK WORD]
#                                        its other half: prints what is in the file FOLDER/NUMBER
#
#   MPI_TRAINER_SCRATCH     see prepare
#   MPI_TRAINER_STREAMS     the mark of these processes, and that of the job's command, which only
#                           PROGRAM gets: whoever ends the command must not end its last words
#   OMPI_MPI_TRAINER_INPUT  set here, for rank.sh: whose standard input rank 0 gets. Open MPI hands
#                           variables to ranks only where they begin so
#   OMPI_MPI_TRAINER_WORD   set here, for rank.sh: what the lines of Open MPI 4's ranks are padded with
#
# Output. The mpirun of Open MPI 5 (prterun) never waits for whoever reads what it prints: what does
# not fit into the pipe it queues, and throws away when it ends. To a file it writes at once and
# whole. So every mpirun gets a file for each stream that is none, and a copier hands on what comes
# in, as fast as it is taken. A file that grows beyond `mt_most` bytes, or a quarter of the room that
# there is, holds mpirun until all of it is read, and is emptied: a slow reader slows the job, as with
# a pipe.
#
# Lines. Hydra and Open MPI 4 print the pieces of a rank's line as they come, and those of others in
# between. MPI_TRAINER_MARK says what is done about it: mpirun is told to mark each piece with its
# rank, and `lines` takes the marks out and puts the lines together. `hydra`: by a word that no rank
# knows. `openmpi`: by the mark that it has, which nothing in a rank's text looks like, see relay;
# `openmpi-marked` keeps one before every line. That takes a Python in the image, and both outputs in
# our hands: what a script has redirected to a file must have no marks. Without it there are none.
#
# Input. Rank 0 gets ours and every other rank none, whatever the MPI: rank.sh gives them that, and
# here an SSH session to rank 0's host carries it. mpirun itself gets none.
#
# Guarantee: every byte that mpirun has printed is handed on, in order, before this ends; it ends
# with mpirun's code, hands signals on, and when it is killed so is mpirun.
# Danger: what the daemons of mpirun print over SSH can be lost in the instant in which a file is
# emptied; ranks' output does not come that way.
#
# Names of variables begin with mt_: one that the job has too would reach its ranks changed.

mt_scratch=$MPI_TRAINER_SCRATCH
mt_most=67108864

# Tenths of a second, $1 of them, where sleep can do that, else a second; a signal ends it.
nap() {
    if [ -z "$mt_tenths" ]; then
        mt_tenths=no
        ! sleep 0.1 2>/dev/null || mt_tenths=yes
    fi
    if [ "$mt_tenths" = yes ]; then set -- "0.$1"; else set -- 1; fi
    sleep "$1" >/dev/null &
    wait $!
}
mt_tenths=

# --- the copier --------------------------------------------------------------------------------

# Sets `mt_at` to how far descriptor 3 has been read.
read_position() {
    mt_at=
    while read -r mt_key mt_value; do
        [ "$mt_key" != pos: ] || mt_at=$mt_value
    done </proc/self/fdinfo/3
}

# A reader that has gone away is none of mpirun's business; where that is `lines`, ours is left.
hand_on() {
    cat <&3 && return
    if [ -n "$mt_lines" ]; then exec >&4 4>&-; else exec >/dev/null; fi
    mt_lines=
}

# Holds mpirun until nothing more can come, hands on what is there and empties the file.
empty() {
    until stopped; do
        kill -STOP "$mt_pid" 2>/dev/null
        nap 1
    done
    hand_on
    : >"$mt_folder/$mt_number"
    mt_before=0
    exec 3<"$mt_folder/$mt_number"
    rm -f "$mt_folder/$mt_number.full"
    # The other copier may hold it too.
    [ -e "$mt_folder/1.full" ] || [ -e "$mt_folder/2.full" ] || kill -CONT "$mt_pid" 2>/dev/null
}

# Whether every thread of mpirun stands still, or it is gone.
stopped() {
    for mt_task in "/proc/$mt_pid/task"/*/stat; do
        read_state "$mt_task"
        case $mt_state in T | t | Z | X | '') ;; *) return 1 ;; esac
    done
}

# Sets `mt_state` to that in the file $1; empty where there is none.
read_state() {
    mt_state=
    [ ! -r "$1" ] || read -r _ _ mt_state _ 2>/dev/null <"$1" || :
}

# Whether mpirun has ended. One whose runner was killed is ended too.
over() {
    [ -n "$mt_pid" ] || [ ! -s "$mt_folder/pid" ] || read -r mt_pid <"$mt_folder/pid"
    if [ ! -d "/proc/$mt_runner" ]; then
        [ -n "$mt_pid" ] || return 0
        kill -KILL "$mt_pid" 2>/dev/null
    fi
    [ -n "$mt_pid" ] || return 1
    read_state "/proc/$mt_pid/stat"
    case $mt_state in Z | X | '') ;; *) return 1 ;; esac
}

copy() {
    mt_folder=$1 mt_number=$2 mt_runner=$3 mt_mark=${4-} mt_word=${5-} mt_pid='' mt_lines=''
    trap '' TERM INT HUP QUIT USR2
    trap : USR1
    # Others may have made the pipe one that does not wait; opened anew it is ours.
    if ( : >>/dev/fd/1 ) 2>/dev/null; then exec >>/dev/fd/1; fi
    if [ -n "$mt_mark" ]; then
        python3 -I -S "${0%/*}/lines" "$mt_mark" "$mt_word" <"$mt_folder/$mt_number.pieces" &
        mt_lines=$!
        exec 4>&1 >"$mt_folder/$mt_number.pieces"
    fi
    exec 3<"$mt_folder/$mt_number"
    mt_before=0 mt_last='' mt_idle=0
    while :; do
        ! over || mt_last=1
        # Times are coarse, and in some shells seconds: now and then it is looked at whatever they say.
        # shellcheck disable=SC3013 # dash, busybox and bash know -nt, and POSIX since 2024
        if [ -n "$mt_last" ] || [ $((mt_idle % 5)) -lt 2 ] ||
            [ "$mt_folder/$mt_number" -nt "$mt_folder/$mt_number.seen" ]; then
            : >"$mt_folder/$mt_number.seen"
            hand_on
        fi
        if [ -n "$mt_last" ]; then break; fi
        [ ! -e "$mt_folder/$mt_number.full" ] || empty
        read_position
        if [ "$mt_at" = "$mt_before" ]; then mt_idle=$((mt_idle + 1)); else mt_idle=0; fi
        mt_before=$mt_at
        # Who prints seldom is not asked so often.
        case $mt_idle in 0) nap 1 ;; 1) nap 3 ;; *) nap 5 ;; esac
    done
    if [ -n "$mt_lines" ]; then
        exec >&-
        while kill -0 "$mt_lines" 2>/dev/null; do wait "$mt_lines"; done
    fi
    [ -d "/proc/$mt_runner" ] || rm -rf "$mt_folder"
}

# --- the runner --------------------------------------------------------------------------------

# Whether what is written to descriptor $1 can wait for a reader.
waits() {
    [ -e "/proc/$$/fd/$1" ] && [ ! -f "/proc/$$/fd/$1" ] && ! same "$1" /dev/null
}

same() {
    # shellcheck disable=SC3013 # dash, busybox and bash know -ef, and POSIX since 2024
    [ "/proc/$$/fd/$1" -ef "$2" ]
}

start_copier() {
    : >"$mt_folder/$1"
    [ -z "$mt_mark" ] || mkfifo -m 600 "$mt_folder/$1.pieces" || exit
    /bin/sh "$mt_self" copy "$mt_folder" "$1" "$$" "$mt_mark" "$mt_word" </dev/null &
    mt_copiers="$mt_copiers $!"
}

# Sets `mt_word` to one that no rank knows; no `mt_mark` where there can be none.
choose_word() {
    [ -n "$mt_mark" ] || return 0
    if [ ! -f "/proc/$$/fd/1" ] && [ ! -f "/proc/$$/fd/2" ] &&
        python3 -I -S -c 'import sys; assert sys.version_info >= (3, 6)' >/dev/null 2>&1 &&
        read -r mt_word 2>/dev/null </proc/sys/kernel/random/uuid; then
        return 0
    fi
    mt_mark=
}

# Sets `mt_most`. A pod's scratch is small and in memory, and what comes until it is noticed must have
# room there too: a file that cannot grow loses what is printed.
measure() {
    mt_free=$(
        df -Pk "$mt_folder" 2>/dev/null | { read -r _ && read -r _ _ _ mt_free _ && echo "$mt_free"; }
    )
    case $mt_free in '' | *[!0-9]*) mt_free=65536 ;; esac
    [ $((mt_free * 256)) -ge "$mt_most" ] || mt_most=$((mt_free * 256))
}

# Asks all the time whether a file has grown too large; only a copier empties it. It holds our
# streams, and the signal that ends it is lost where it comes before the shell has begun: so it goes
# when the runner has gone.
bound() {
    while [ -d "/proc/$$" ]; do
        nap 2
        for mt_number in 1 2; do
            [ -s "$mt_folder/$mt_number" ] || continue
            [ "$(wc -c <"$mt_folder/$mt_number")" -gt "$mt_most" ] || continue
            : >"$mt_folder/$mt_number.full"
            kill -STOP "$1" 2>/dev/null
        done
    done
}

# Waits for whoever tells where rank 0 is, and gives it our standard input.
feed() {
    read -r mt_host mt_name <>"$mt_folder/input" || exit
    if [ "$mt_host" = - ]; then
        exec cat >"$mt_scratch/ranks/.$mt_name.input"
    else
        exec ssh "$mt_host" "mpi-agent-input $mt_name"
    fi
}

# shellcheck disable=SC2317 # called by trap
forward() {
    mt_interrupted=1
    kill -"$1" "$mt_child" 2>/dev/null
    kill -CONT "$mt_child" 2>/dev/null
}

# Becomes mpirun $@, with the mark of the job's command.
begin() {
    MPI_TRAINER_COMMAND=$MPI_TRAINER_STREAMS
    export MPI_TRAINER_COMMAND
    unset MPI_TRAINER_STREAMS
    exec "$@"
}

run() {
    mt_self=$0 mt_copiers='' mt_feeder=''
    mt_out='' mt_err=''
    ! waits 1 || mt_out=1
    ! waits 2 || mt_err=1
    mt_input=
    if [ -n "${MPI_TRAINER_INPUT-}" ] && [ -e "/proc/$$/fd/0" ] && ! same 0 /dev/null; then
        mt_input=1
    fi
    [ -z "${MPI_TRAINER_INPUT-}" ] || export OMPI_MPI_TRAINER_INPUT=none
    mt_mark=${MPI_TRAINER_MARK-} mt_word=''
    unset MPI_TRAINER_INPUT MPI_TRAINER_MARK
    mt_folder=$mt_scratch/launch/streams.$$
    if [ -z "$mt_out$mt_err$mt_input" ] || ! mkdir -m 700 "$mt_folder" 2>/dev/null; then begin "$@"; fi
    measure
    choose_word
    mt_program=$1
    shift
    case $mt_mark in
        hydra)
            mt_word="<${mt_word%%-*}."
            set -- "-prepend-pattern=$mt_word%r>" "$@"
            ;;
        openmpi*)
            # No text ends in the beginning of it by chance.
            mt_word=$(printf '\036%s' "$mt_word")
            export OMPI_MPI_TRAINER_WORD="$mt_word"
            set -- --tag-output "$@"
            ;;
    esac
    set -- "$mt_program" "$@"

    mt_out_to='' mt_err_to=''
    if [ -n "$mt_out" ]; then
        mt_out_to=1
        start_copier 1
    fi
    if [ -n "$mt_err" ] && [ -n "$mt_out" ] && same 1 "/proc/$$/fd/2"; then
        mt_err_to=1
    elif [ -n "$mt_err" ]; then
        mt_err_to=2
        start_copier 2 >&2
    fi
    if [ -n "$mt_input" ] && mkfifo -m 600 "$mt_folder/input"; then
        OMPI_MPI_TRAINER_INPUT=$$
        exec 4<&0
        feed <&4 >/dev/null &
        mt_feeder=$!
        exec 4<&-
    fi
    (
        [ -z "$mt_out_to" ] || exec >>"$mt_folder/$mt_out_to"
        [ -z "$mt_err_to" ] || exec 2>>"$mt_folder/$mt_err_to"
        read -r mt_pid _ </proc/self/stat
        echo "$mt_pid" >"$mt_folder/pid"
        begin "$@" </dev/null
    ) &
    mt_child=$!
    mt_interrupted=
    for mt_signal in TERM INT HUP QUIT USR1 USR2; do
        # shellcheck disable=SC2064 # the signal of now
        trap "forward $mt_signal" "$mt_signal"
    done
    bound "$mt_child" </dev/null >/dev/null 2>&1 &
    mt_bound=$!
    wait "$mt_child"
    mt_code=$?
    while kill -0 "$mt_child" 2>/dev/null; do
        wait "$mt_child"
        mt_code=$?
    done
    if [ -n "$mt_interrupted" ]; then
        wait "$mt_child" 2>/dev/null
        mt_again=$?
        [ "$mt_again" -eq 127 ] || mt_code=$mt_again
    fi
    # shellcheck disable=SC2086 # pids
    kill $mt_bound $mt_feeder 2>/dev/null
    for mt_copier in $mt_copiers; do
        kill -USR1 "$mt_copier" 2>/dev/null
        while kill -0 "$mt_copier" 2>/dev/null; do wait "$mt_copier"; done
    done
    rm -rf "$mt_folder"
    exit "$mt_code"
}

mt_part=$1
shift
case $mt_part in
    run) run "$@" ;;
    copy) copy "$@" ;;
esac
