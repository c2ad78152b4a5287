#!/bin/sh
# Runs on every host of the job, for as long as the launcher's control channel lasts, and tells the
# launcher what happens here: one event a line on standard output.
#
#   watch start|again     start: ranks left from an earlier attempt are ended first
#
# Told on standard input: `flush N` (answer `flushed N` when all is told), `look WORLD`, `where`,
# `left`, `dry NAME` (no standard input comes for that rank), `end` (end the ranks), `bye`. Events, with the fields of rank.sh's records:
#
#   hello UPTIME ADDRESS       once; 1/100 s since the boot, IPv4 address as the kernel writes it
#   beat PEAK OOM              every two seconds: memory peak in bytes, kills for memory
#   start FIELDS, end FIELDS   a rank has begun, has ended
#   lost FIELDS                a rank is gone, and so is whoever should have recorded its end
#                              these two with aborted=CODE where it said that it ends all ranks
#   orphan FIELDS              a rank's MPI daemon is gone, the rank is not
#   raised FIELDS              a rank's Python program has failed and is about to end
#   stuck FIELDS               ... and has not ended since
#   daemon status=CODE         an MPI daemon has ended with a failure
#   foreign FIELDS             a rank uses another MPI than the one that started it
#   syn ADDRESS                nothing answers there, for 20 seconds
#   waits WORLD RANK, works WORLD RANK   answers to `look`, see waiting.sh
#   quiet RANKS                all ranks here, so many, have been quiet for suspect_seconds; 0: no longer
#   place FIELDS, placed RANKS answers to `where`, see places.sh
#   left COUNT                 answer to `left`: processes of ranks and of what they have started
#
# When the channel breaks and no other comes within lost_seconds, the ranks here are ended: their
# launcher is gone. Danger: a line must stay below 4096 bytes, or two could mix in the launcher.

here=${0%/*}
# shellcheck source-path=SCRIPTDIR source=processes.sh
. "$here/processes"
# shellcheck source-path=SCRIPTDIR source=waiting.sh
. "$here/waiting"
# shellcheck source-path=SCRIPTDIR source=places.sh
. "$here/places"
lost_seconds=20 stuck_seconds=10 suspect_seconds=300
# shellcheck disable=SC1091 # rendered from the job's annotations
[ ! -r "$here/settings" ] || . "$here/settings"
scratch=${MPI_TRAINER_SCRATCH:-/run/mpi-agent}
ranks=$scratch/ranks
session=MPI_TRAINER_SESSION=$scratch

# --- what the ranks have left ------------------------------------------------------------------

# Sets `line` to the record in file $1 on one line, and `wrapper`, `parent`, `world`, `pid`, and
# `begun`, which a record of a start ends with.
read_record() {
    line='' by='' wrapper='' parent='' world='' pid='' begun='' input=''
    while IFS= read -r pair; do
        line="$line $pair"
        case $pair in
            wrapper=*) wrapper=${pair#*=} ;;
            parent=*) parent=${pair#*=} ;;
            world=*) world=${pair#*=} ;;
            pid=*) pid=${pair#*=} ;;
            by=*) by=${pair#*=} ;;
            input=*) input=${pair#*=} ;;
            start=*) begun=1 ;;
        esac
    done <"$1"
}

# `live` holds NAME,WRAPPER,PARENT,WORLD,PID of every rank that has begun and not ended.
# `thirsty` holds NAME@TICK of those that were to get standard input.
live='' orphans='' failed='' unknown='' strangers='' thirsty=''

# Sets `names` to the ranks that have a record of the kind $1.
list() {
    names=
    for file in "$ranks"/*."$1"; do
        name=${file##*/}
        name=${name%.*}
        case $name in *[!-.A-Za-z0-9_]*) continue ;; esac
        [ ! -r "$file" ] || names="$names $name"
    done
}

# What a rank leaves last is listed first: so nothing is told of a rank before its start, however
# much of it comes while this looks.
scan() {
    list end
    ends=$names
    list raised
    raised=$names
    list foreign
    users=$names
    list start
    set --
    for name in $names; do
        case $live in *" $name,"*) continue ;; esac
        read_record "$ranks/$name.start"
        [ -n "$begun" ] || continue
        echo "start$line"
        live="$live $name,$wrapper,$parent,$world,$pid"
        [ "$by" != hydra ] || unknown="$unknown $name,$pid"
        [ -z "$input" ] || thirsty="$thirsty $name@$tick"
    done
    for name in $users; do
        foreign "$name"
        set -- "$@" "$ranks/$name.foreign"
    done
    for name in $raised; do
        read_record "$ranks/$name.raised"
        find_live "$name"
        echo "raised rank=${name%%.*} world=$world$line"
        read_uptime
        failed="$failed $name,$pid,$uptime"
        set -- "$@" "$ranks/$name.raised"
    done
    for file in "$ranks"/*.daemon; do
        [ -r "$file" ] || continue
        read -r line <"$file"
        echo "daemon $line"
        rm -f "$file"
    done
    for name in $ends; do
        read_record "$ranks/$name.end"
        case $line in *" signal="*) read_abort "$name" ;; *) aborted= ;; esac
        echo "end$line${aborted:+ aborted=$aborted}"
        forget "$name"
        set -- "$@" "$ranks/$name.end" "$ranks/$name.start"
    done
    # All at once: one process, not one for each.
    [ $# -eq 0 ] || mv -f "$@" "$ranks/done/" 2>/dev/null
}

foreign() {
    case $strangers in *" $1 "*) return 0 ;; esac
    strangers="$strangers $1 "
    find_live "$1"
    echo "foreign rank=$rank world=$world"
}

# Sets `world` and `rank` to those of the live rank $1.
find_live() {
    world='' rank=${1%%.*}
    for entry in $live; do
        case $entry in
            "$1",*)
                entry=${entry#*,*,*,}
                world=${entry%%,*}
                ;;
        esac
    done
}

forget() {
    kept=
    for entry in $live; do
        case $entry in "$1",*) ;; *) kept="$kept $entry" ;; esac
    done
    live=$kept
    [ -z "$live" ] || live="$live "
}

# --- what has become of them -------------------------------------------------------------------

check() {
    for entry in $live; do
        name=${entry%%,*}
        rest=${entry#*,}
        wrapper=${rest%%,*}
        rest=${rest#*,}
        parent=${rest%%,*}
        find_live "$name"
        if [ ! -d "/proc/$wrapper" ]; then
            [ -r "$ranks/$name.end" ] || check_missing "$name"
        elif read -r _ _ _ above _ 2>/dev/null <"/proc/$wrapper/stat"; then
            case $above:$orphans in
                "$parent":* | *" $name "*) ;;
                *)
                    echo "orphan rank=$rank world=$world"
                    orphans="$orphans $name "
                    ;;
            esac
        fi
    done
    [ -z "$failed" ] || check_failed
    [ -z "$unknown" ] || check_libraries
    [ -z "$thirsty" ] || check_inputs
}

# A rank must not wait for ever for input that nobody brings. Where somebody has come, this is nothing.
check_inputs() {
    later=
    for entry in $thirsty; do
        if [ $((tick - ${entry##*@})) -ge 30 ]; then dry "${entry%@*}"; else later="$later $entry"; fi
    done
    thirsty=$later
}

# Opens and closes the pipe of the rank $1. For both ways, so that it never waits for a reader.
dry() {
    case $1 in *[!-.A-Za-z0-9_]*) return 0 ;; esac
    [ ! -p "$ranks/.$1.input" ] || : 1<>"$ranks/.$1.input"
}

# The rank $1 is gone with its wrapper. Its record may just be on its way, until the next look, and
# so may its last words, for two seconds.
check_missing() {
    case $missing in
        *" $1@"*) ;;
        *)
            read_uptime
            missing="$missing $1@$uptime "
            return 0
            ;;
    esac
    read_abort "$1"
    if [ -z "$whole" ]; then
        since=${missing##*" $1@"}
        read_uptime
        [ $((uptime - ${since%% *})) -ge 200 ] || return 0
    fi
    echo "lost rank=$rank world=$world${aborted:+ aborted=$aborted}"
    forget "$1"
    mv -f "$ranks/$1.start" "$ranks/done/" 2>/dev/null
}

# Sets `aborted` to the code with which the rank of the record $1 said that it ends all ranks, and
# `whole` where nothing more of what it said will come.
read_abort() {
    aborted='' whole=1
    [ -r "$ranks/.$1.words" ] || return 0
    whole=
    while IFS= read -r said || [ -n "$said" ]; do
        case $said in
            "mpi-agent kept") whole=1 ;;
            *"Abort("[0-9]*") on node ${1%%.*} (rank "*)
                aborted=${said#*Abort(}
                aborted=${aborted%%)*}
                ;;
        esac
    done <"$ranks/.$1.words"
    case $aborted in *[!0-9]*) aborted= ;; esac
}

check_failed() {
    read_uptime
    waiting=
    for entry in $failed; do
        name=${entry%%,*}
        since=${entry##*,}
        pid=${entry#*,}
        pid=${pid%,*}
        [ -d "/proc/$pid" ] || continue
        if [ "$stuck_seconds" -gt 0 ] && [ $((uptime - since)) -ge $((stuck_seconds * 100)) ]; then
            find_live "$name"
            echo "stuck rank=$rank world=$world pid=$pid"
        else
            waiting="$waiting $entry"
        fi
    done
    failed=$waiting
}

# A program with Open MPI's library that Hydra has started is alone in a world of its own.
check_libraries() {
    later=
    for entry in $unknown; do
        pid=${entry#*,}
        [ -d "/proc/$pid" ] || continue
        found=
        for member in $(family "$pid"); do
            if grep -qs /libopen-pal "/proc/$member/maps"; then
                found=foreign
            elif grep -qs -e '/libmpi[^/]*\.so' "/proc/$member/maps"; then
                found=${found:-own}
            fi
        done
        case $found in
            '') later="$later $entry" ;;
            foreign) foreign "${entry%%,*}" ;;
        esac
    done
    # A program that takes longer to load MPI has none.
    [ "$tick" -lt 600 ] || later=
    unknown=$later
}

# Addresses that do not answer, as ADDRESS=TIMES-SEEN; five looks in a row are 20 seconds.
unanswered=

check_network() {
    again=
    # Most often there is none, and nothing more is started.
    asking=$(grep -hs ' 02 [0-9A-F]*:' /proc/net/tcp) || asking=
    [ -z "$asking" ] || asking=$(echo "$asking" | while read -r _ _ to state _; do
        [ "$state" != 02 ] || echo "${to%%:*}"
    done | sort -u)
    for remote in $asking; do
        times=0
        for entry in $unanswered; do
            case $entry in "$remote="*) times=${entry#*=} ;; esac
        done
        times=$((times + 1))
        again="$again $remote=$times"
        [ "$times" -ne 5 ] || echo "syn $remote"
    done
    unanswered=$again
}

# --- the loop ----------------------------------------------------------------------------------

beat() {
    read_memory
    echo "beat ${peak:--} ${oom:--}"
}

# IPv4, as in /proc/net/tcp: hexadecimal, last byte first on the machines that we know.
address() {
    # shellcheck disable=SC2086 # four words
    set -- ${SSH_CONNECTION-}
    case ${3-} in
        *.*.*.*)
            IFS=.
            # shellcheck disable=SC2086
            set -- $3
            unset IFS
            printf '%02X%02X%02X%02X' "$4" "$3" "$2" "$1"
            ;;
        *) printf -- - ;;
    esac
}

# The launcher does not hear us any more. It may come back; else the ranks have no master.
abandoned() {
    left=$lost_seconds
    while [ "$left" -gt 0 ]; do
        sleep 1
        read -r newest <"$scratch/watch.pid"
        [ "$newest" = "$$" ] || return 0
        left=$((left - 1))
    done
    end_marked "$session" 5
}

obey() {
    case $1 in
        flush\ *)
            scan
            check
            beat
            echo "flushed ${1#flush }"
            ;;
        look\ *) look "${1#look }" ;;
        where)
            : >"$scratch/asking"
            where </dev/null &
            ;;
        scan) scan ;;
        dry\ *) dry "${1#dry }" ;;
        left) echo "left $(marked "MPI_TRAINER_RECORD=$ranks/" | grep -c .)" ;;
        end)
            end_marked "$session" 2
            scan
            ;;
        bye) exit 0 ;;
    esac
}

[ -d "$ranks/done" ] || mkdir -p "$ranks/done"
if [ -e "$scratch/watch.pid" ]; then
    # Not the first here.
    [ "$1" != start ] || signal_marked "$session" KILL || :
    [ "$1" != start ] || rm -f "$ranks"/*.* "$ranks"/.[0-9]* "$ranks"/done/*
    rm -f "$scratch"/watch.[0-9]*
fi
echo $$ >"$scratch/watch.pid"
rm -f "$scratch/asking"
fifo=$scratch/watch.$$
mkfifo -m 600 "$fifo" || exit 102
exec 7<>"$fifo" 4<&0
(
    exec 7>&- 4<&-
    while sleep 1; do echo t; done
) >"$fifo" 2>/dev/null &
ticker=$!
(
    exec 7>&-
    while read -r order; do echo "o $order"; done
    echo gone
) <&4 >"$fifo" 2>/dev/null &
trap 'kill $ticker $! 2>/dev/null; rm -f "$fifo"' EXIT
trap 'exit 143' TERM HUP INT
trap '' PIPE

read_uptime
tick=0 missing=''
find_interval
echo "hello $uptime $(address)"
while :; do
    read -r word order <&7 || continue
    case $word in
        t)
            tick=$((tick + 1))
            scan
            check
            [ $((tick % 2)) -ne 0 ] || beat
            [ $((tick % 4)) -ne 0 ] || [ -z "$live" ] || check_network
            [ "$suspect_seconds" -eq 0 ] || [ $((tick % every)) -ne 0 ] || sample
            ;;
        o) obey "$order" ;;
        gone)
            abandoned
            exit 0
            ;;
    esac
done 2>/dev/null
