# shellcheck shell=sh disable=SC2034,SC2154 # its variables are those of whoever reads it
# What the launcher has heard of the ranks, and when that proves that the job must end. Sourced by
# launch.
#
# A proof is a word, with fields, and an exit code; what it means is for whoever reads the summary
# to say (diagnose/agent_facts.py). Each needs evidence; silence is none:
#
#   103 no-answer   a worker that runs does not answer        wait_seconds
#   103 no-names    DNS knows no name of the cluster          wait_seconds
#   104 silent      a host's heartbeats have stopped          lost_seconds
#   105 orphans     ranks live whose MPI daemon is gone       3 s
#   106 bad         a rank ended badly or vanished, and       dead_seconds
#                   others of its world go on
#   106 over        ... none is left, and mpirun goes on      dead_seconds
#   107 stuck       a rank's Python program has failed, and   stuck_seconds
#                   waits in MPI's finalization
#   108 unstarted   mpirun has not started all its ranks      start_seconds
#   109 unanswered  a rank's connection to another host of    20 s
#                   the job gets no answer
#   110 left        a rank left without MPI_Finalize, and     15 s
#                   all others wait inside MPI
#   111 daemon      an MPI daemon could not start, and        10 s
#                   mpirun waits for it
#   112 idle        all ranks ended well, no process of       6 x dead_seconds
#                   theirs is left, and mpirun goes on
#
# What hosts say is the word of whoever has code there: it becomes part of no command, no name of a
# variable and no sum before `numeric` has seen it.
#
# 0 seconds, for those that have a setting, mean never. Worlds are the runs of mpirun, in the order
# of their first rank. A world's `living` ranks have begun and are not known to have ended.

begin_story() {
    worlds=0 run_began='' run_pid='' worlds_before=0 together='' over='' asked=0
    dropped='' daemon_at='' daemons='' nameless='' names_asked=0
}

# --- what was heard ------------------------------------------------------------------------------

# The host number $1 says $2 with the fields $3.
heard() {
    [ "$2" != hello ] || joined "$1"
    case " $numbers " in *" $1 "*) ;; *) return 0 ;; esac
    [ "$2" = down ] || eval "seen_$1=\$now"
    case $2 in
        hello)
            numeric "${3%% *}" || return 0
            no_octal "${3%% *}"
            read_uptime
            eval "quiet_$1=0 up_$1=1 why_$1= hex_$1=\${3#* } behind_$1=$((uptime - number))"
            [ -z "$launched" ] || note_alive
            ;;
        beat) eval "peak_$1=\${3% *} oom_$1=\${3#* }" ;;
        daemon)
            numeric "${3#*=}" || return 0
            daemons="$daemons $1=${3#*=}"
            daemon_at=${daemon_at:-$now}
            ;;
        down)
            eval "up_$1= why_$1=\$3"
            if [ -n "$launched" ]; then
                dropped="$dropped $1"
                note_alive
            elif [ "$1" -ne 0 ]; then
                answered_not "$1" "$3"
            fi
            ;;
        flushed) awaited=${awaited%%" $1 "*}${awaited#*" $1 "} ;;
        syn) unanswered_at "$1" "$3" ;;
        waits | works) looked "$2" "${3% *}" ;;
        quiet | place | placed) heard_quiet "$1" "$2" "$3" ;;
        left)
            numeric "$3" || return 0
            no_octal "$3"
            answers=$((answers + 1)) remaining=$((remaining + number))
            ;;
        start | end | lost | orphan | raised | stuck | foreign) event "$1" "$2" "$3" ;;
    esac
}

# A rank on the host $1 waits for the standard input of a run of mpirun: `input` is RUN/NAME. The
# first gets it, see streams; one that was started by it, as another world, gets none.
offer_input() {
    pipe=$run/streams.${input%%/*}/input name=${input#*/}
    case ${input%%/*} in '' | *[!0-9]*) return 0 ;; esac
    case $name in *[!-.A-Za-z0-9_]*) return 0 ;; esac
    if [ -p "$pipe" ] && [ ! -e "$pipe.taken" ]; then
        : >"$pipe.taken"
        address=-
        [ "$1" -eq 0 ] || eval "address=\$address_$1"
        echo "$address $name" 1<>"$pipe"
    else
        order "$1" "dry $name"
    fi
}

# mpirun has been called, as process $1. Of two at once nobody knows whose ranks are whose.
run_begins() {
    [ -z "$run_pid" ] || [ ! -d "/proc/$run_pid" ] || together=1
    run_began=$now run_pid=$1 worlds_before=$worlds over=
}

# Whether all words are digits, and not too many for a sum.
numeric() {
    for word in "$@"; do
        case $word in
            *[!0-9]* | ????????????????* | '') return 1 ;;
        esac
    done
}

# Sets `number` to the digits $1 without the zeros in front, which make it octal.
no_octal() {
    number=${1#"${1%%[!0]*}"}
    number=${number:-0}
}

# Sets a variable for every field in $1; `what` is the last and may have spaces. Fails where one that
# must be a number is none.
read_fields() {
    rank='' size='' world='' pid='' status='' signal='' at=0 oom=0 orphan=0 where='' what=''
    by='' aborted='' input=
    case $1 in *" what="*) what=${1#* what=} ;; esac
    set -f
    for pair in ${1%% what=*}; do
        case $pair in
            rank=*) rank=${pair#*=} ;;
            size=*) size=${pair#*=} ;;
            world=*) world=${pair#*=} ;;
            pid=*) pid=${pair#*=} ;;
            status=*) status=${pair#*=} ;;
            signal=*) signal=${pair#*=} ;;
            at=*) at=${pair#*=} ;;
            oom=*) oom=${pair#*=} ;;
            orphan=*) orphan=${pair#*=} ;;
            where=*) where=${pair#*=} ;;
            by=*) by=${pair#*=} ;;
            aborted=*) aborted=${pair#*=} ;;
            input=*) input=${pair#*=} ;;
        esac
    done
    set +f
    numeric "$rank" "${size:-0}" "${pid:-0}" "${status:-0}" "${signal:-0}" "$at" || return 1
    numeric "$oom" "$orphan" || oom=0 orphan=0
    no_octal "$at"
    at=$number
    no_octal "$rank"
    rank=$number
}

# Sets `w` to the number of the world named $1; the newest is the likeliest.
find_world() {
    w=$worlds
    while [ "$w" -gt 0 ]; do
        eval "[ \"\$world_$w\" != \"\$1\" ]" || return 0
        w=$((w - 1))
    done
    worlds=$((worlds + 1))
    w=$worlds
    eval "world_$w=\$1 size_$w=0 began_$w=$now started_$w=0 ended_$w=0 lost_$w=0"
    eval "bad_$w= zero_$w= orphan_$w= orphans_of_$w= raised_$w= foreign_$w="
    eval "strikes_$w=0 looked_$w=0 top_$w=-1 by_$w="
}

event() {
    pod_name "$1"
    printf 'mpi-agent| %s %s %s %s\n' "$now" "$pod" "$2" "$3" >&2
    read_fields "$3" || return 0
    find_world "$world"
    eval "state=\${r_${w}_$rank-}"
    case $2:$state in
        start:) ;;
        start:*) return 0 ;; # told again by a channel that was opened again
    esac
    story="$rank $1 ${pid:-0}"
    case $2 in
        start)
            [ -z "$size" ] || eval "size_$w=$size"
            eval "by_$w=\$by"
            eval "started_$w=\$((started_$w + 1)) r_${w}_$rank=running h_${w}_$rank=$1"
            eval "[ \"\$top_$w\" -ge $rank ] || top_$w=$rank"
            [ -z "$input" ] || offer_input "$1"
            ;;
        end)
            eval "ended_$w=\$((ended_$w + 1)) r_${w}_$rank=ended"
            eval "at=\$((at + behind_$1))"
            if [ "$status" = 0 ]; then
                eval "zero_$w=\${zero_$w:-$now}"
                story="$story status 0 $at $oom 0"
            else
                eval "bad_$w=$now"
                [ -z "$signal" ] && story="$story status $status $at $oom $orphan" ||
                    story="$story signal $signal $at $oom $orphan"
            fi
            ;;
        lost) eval "lost_$w=\$((lost_$w + 1)) bad_$w=$now r_${w}_$rank=lost" ;;
        orphan) eval "orphan_$w=\${orphan_$w:-$now} orphans_of_$w=\${orphans_of_$w:-\$pod}" ;;
        raised)
            eval "raised_$w=\"\$raised_$w $rank\""
            story="$rank $1 $where $what"
            ;;
        foreign) eval "foreign_$w=1 f_${w}_$rank=1" ;;
        stuck)
            prove stuck "rank=$rank pod=$pod"
            ;;
    esac
    # Not echo, which makes lines of its own out of backslashes in some shells.
    printf '%s %s\n' "$2" "$story" >>"$run/world.$w"
    [ -z "$aborted" ] || printf 'aborted %s %s %s\n' "$rank" "$1" "$aborted" >>"$run/world.$w"
}

pod_name() {
    eval "pod=\$pod_$1"
}

unanswered_at() {
    pod_name "$1"
    from=$pod
    for number in $numbers; do
        eval "hex=\$hex_$number"
        [ "$hex" = "$2" ] || continue
        pod_name "$number"
        prove unanswered "from=$from pod=$pod"
    done
}

looked() {
    find_world "$2"
    case $1 in
        waits) eval "waiting_$w=\$((waiting_$w + 1))" ;;
        works) eval "strikes_$w=0 waiting_$w=-99999" ;;
    esac
}

# The job must end, because of $1 with the fields $2.
prove() {
    [ -z "$proof" ] && [ -z "$code" ] || return 0
    proof=$1 proved=${2-}
}

# --- what it means -------------------------------------------------------------------------------

# Before the command has started.
judge_wait() {
    if [ -n "$nameless" ] && [ $((now - nameless)) -ge "$wait_seconds" ]; then
        prove no-names "seconds=$wait_seconds"
    fi
    for number in ${numbers#0}; do
        eval "up=\$up_$number late=\$late_$number"
        if [ -n "$up" ] || [ -z "$late" ] || [ $((now - late)) -lt "$wait_seconds" ]; then continue; fi
        prove no-answer "seconds=$wait_seconds"
        return 0
    done
}

judge() {
    for number in $numbers; do
        eval "seen=\$seen_$number pod=\$pod_$number"
        if [ "$lost_seconds" -gt 0 ] && [ $((now - seen)) -gt "$lost_seconds" ]; then
            prove silent "host=$number pod=$pod seconds=$((now - seen))"
        fi
    done
    w=$worlds
    while [ "$w" -gt 0 ] && [ "$w" -gt $((worlds - 8)) ]; do
        judge_world
        w=$((w - 1))
    done
    [ -z "$run_pid" ] || judge_run
}

judge_run() {
    if [ ! -d "/proc/$run_pid" ] || handing_on; then
        run_pid=
    elif [ "$worlds" -eq "$worlds_before" ]; then
        judge_start
    elif [ "$dead_seconds" -gt 0 ] && [ -z "$together" ]; then
        judge_end
    fi
}

# Whether mpirun itself has ended, and what it printed is only waiting for a reader. One that is held
# for such a reader does not count as going on, nor one that computes: a line of megabytes is hard
# work for Open MPI 5. See streams.
handing_on() {
    [ -s "$run/streams.$run_pid/pid" ] || return 1
    read -r pid <"$run/streams.$run_pid/pid"
    if [ -e "$run/streams.$run_pid/1.full" ] || [ -e "$run/streams.$run_pid/2.full" ]; then over=; fi
    ended=1
    for thread in "/proc/$pid/task"/*/stat; do
        state=Z
        [ ! -r "$thread" ] || read -r _ _ state _ 2>/dev/null <"$thread" || :
        case $state in
            Z | X) ;;
            R | D) ended='' over='' ;;
            *) ended= ;;
        esac
    done
    [ -n "$ended" ]
}

# mpirun has been called and has started no rank yet.
judge_start() {
    [ "$start_seconds" -gt 0 ] || return 0
    judge_daemon
    if [ $((now - run_began)) -gt "$start_seconds" ]; then
        prove unstarted "started=0 seconds=$((now - run_began))"
    fi
}

# A start that is not complete, because a daemon could not start.
judge_daemon() {
    [ -n "$daemon_at" ] && [ $((now - daemon_at)) -ge 10 ] || return 0
    prove daemon
}

# All ranks of mpirun have ended, and it has not: seen with Open MPI 5, which may miss an end.
judge_end() {
    bad_world='' w=$worlds
    while [ "$w" -gt "$worlds_before" ]; do
        eval "living=\$((started_$w - ended_$w - lost_$w)) started=\$started_$w size=\$size_$w"
        if [ "$living" -gt 0 ] || [ "$started" -lt "$size" ]; then
            over=
            return 0
        fi
        eval "[ -z \"\$bad_$w\" ] || bad_world=$w"
        w=$((w - 1))
    done
    over=${over:-$now}
    if [ -z "$bad_world" ]; then
        [ $((now - over)) -lt $((6 * dead_seconds)) ] || judge_remains
    elif [ $((now - over)) -ge "$dead_seconds" ]; then
        prove over "world=$bad_world seconds=$((now - over))"
    fi
}

# What ranks have started may outlive them, and mpirun then waits for its output. Every host is
# asked; only when all have answered that nothing is left does mpirun wait for nothing.
judge_remains() {
    if [ "$asked" -gt "$over" ] && [ "$answers" -gt "${numbers##* }" ] && [ "$remaining" -eq 0 ]; then
        prove idle "seconds=$((now - over))"
    elif [ $((now - asked)) -ge 10 ]; then
        asked=$now answers=0 remaining=0
        for number in $numbers; do order "$number" left; done
    fi
}

judge_world() {
    eval "living=\$((started_$w - ended_$w - lost_$w)) bad=\$bad_$w zero=\$zero_$w"
    eval "began=\$began_$w started=\$started_$w size=\$size_$w orphan=\$orphan_$w"
    if [ "$living" -le 0 ] && [ "$started" -ge "$size" ]; then return 0; fi
    if [ -n "$orphan" ] && [ "$living" -gt 0 ] && [ $((now - orphan)) -ge 3 ]; then
        eval "pod=\$orphans_of_$w"
        prove orphans "world=$w pod=$pod"
    fi
    if [ -n "$bad" ] && [ "$dead_seconds" -gt 0 ] && [ $((now - bad)) -ge "$dead_seconds" ]; then
        prove bad "world=$w living=$living seconds=$((now - bad))"
    fi
    [ "$started" -ge "$size" ] || judge_daemon
    if [ "$started" -lt "$size" ] && [ "$start_seconds" -gt 0 ] &&
        [ $((now - began)) -gt "$start_seconds" ]; then
        prove unstarted "world=$w started=$started size=$size seconds=$((now - began))"
    fi
    if [ -z "$bad" ] && [ -n "$zero" ] && [ "$living" -gt 0 ] && [ $((now - zero)) -ge 5 ]; then
        judge_leaving
    fi
}

# Two looks in a row must find that every other rank waits. An answer takes four seconds, and longer
# where there is much to do.
judge_leaving() {
    eval "strikes=\$strikes_$w waiting=\${waiting_$w:-0} looked=\$looked_$w name=\$world_$w"
    [ $((now - looked)) -ge 5 ] || return 0
    if [ "$waiting" -ge 0 ] && [ "$waiting" -lt "$living" ] && [ $((now - looked)) -lt 9 ]; then
        return 0
    fi
    if [ "$looked" -gt 0 ] && [ "$waiting" -eq "$living" ]; then
        strikes=$((strikes + 1))
    else
        strikes=0
    fi
    if [ "$strikes" -ge 2 ]; then
        prove left "world=$w living=$living"
    fi
    eval "strikes_$w=$strikes waiting_$w=0 looked_$w=$now"
    for number in $numbers; do order "$number" "look $name"; done
}

exit_code() {
    case $proof in
        no-answer | no-names) echo 103 ;;
        silent) echo 104 ;;
        orphans) echo 105 ;;
        bad | over) echo 106 ;;
        stuck) echo 107 ;;
        unstarted) echo 108 ;;
        unanswered) echo 109 ;;
        left) echo 110 ;;
        daemon) echo 111 ;;
        idle) echo 112 ;;
        *) echo "$code" ;;
    esac
}
