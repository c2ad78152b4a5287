# shellcheck shell=sh disable=SC2030,SC2031,SC2034,SC2154 # its variables are those of whoever reads it
# The launcher's last words: what became of every rank, in at most 4096 bytes. Sourced by launch.
#
# One fact a line, read by summary.py. The world told of is the one that failed, else the last:
#
#   mpi-agent 1                                   the version of this form
#   level LEVEL
#   ended REASON CODE                             `Command`, or a verdict; the command's exit code
#   text WORDS                                    a verdict's, or a cause's
#   cause REASON RANK POD                         whose fault a failure was; - where nobody's
#   down POD WHY                                  hosts that do not answer
#   world size=N started=N ended=N lost=N runs=N  runs: how many worlds there were
#   bad RANK POD status|signal=N pid=N oom=N      ranks that ended badly, the first first
#   raised RANK POD WHERE WHAT                    what their Python programs said
#   lost RANKS POD, open RANKS POD                never seen to end: vanished, or still there
#   foreign RANKS POD                             used another MPI than their mpirun's
#   host POD RANKS peak=BYTES oom=N               where ranks were; 0-3,7 are five ranks
#   more                                          lines were left out

# Joins the sorted numbers $@ to ranges.
ranges() {
    out='' from='' to=''
    for n in "$@"; do
        if [ -n "$to" ] && [ "$n" -eq $((to + 1)) ]; then
            to=$n
        elif [ "$n" != "$to" ]; then
            [ -z "$to" ] || span
            from=$n to=$n
        fi
    done
    [ -z "$to" ] || span
}

span() {
    out="$out${out:+,}$from"
    [ "$from" = "$to" ] || out="$out-$to"
}

# The lines of kind $2 in the story of the world $1, sorted by the field $3.
lines_of() {
    [ ! -r "$run/world.$1" ] || grep "^$2 " "$run/world.$1" | sort -n -k "$3,$3"
}

# `rank 1 on train-worker-1 ended with signal 9`: the first that ended badly in the world $1.
first_bad() {
    bad_ends "$1" | {
        if read -r rank host _ how value _ kills _; then
            pod_name "$host"
            [ "$how" = signal ] || how="exit code"
            [ "$kills" = 0 ] || value="$value (out of memory)"
            echo "rank $rank on $pod ended with $how $value"
        else
            lines_of "$1" lost 2 | {
                read -r _ rank host _
                pod_name "$host"
                echo "rank $rank on $pod has vanished"
            }
        fi
    }
}

bad_ends() {
    lines_of "$1" end 7 | while read -r _ rank host pid how value at kills orphan; do
        [ "$how $value" = "status 0" ] ||
            echo "$rank $host $pid $how $value $at $kills $orphan"
    done
}

# Prints `$1 RANKS POD` for every host with ranks of that kind; for `host`, which is all that have
# started, also the host's memory. Starts no process, however many ranks there are.
by_host() {
    for number in $numbers; do eval "ranks_$number="; done
    rank=0
    eval "top=\$top_$w"
    while [ "$rank" -le "$top" ]; do
        eval "state=\${r_${w}_$rank-} there=\${h_${w}_$rank-} stranger=\${f_${w}_$rank-}"
        case $1:$state:$stranger in
            host:[a-z]* | lost:lost:* | open:running:* | foreign:*:1)
                [ -z "$there" ] || eval "ranks_$there=\"\$ranks_$there \$rank\""
                ;;
        esac
        rank=$((rank + 1))
    done
    for number in $numbers; do
        eval "list=\$ranks_$number pod=\$pod_$number peak=\$peak_$number oom=\$oom_$number"
        [ -n "$list" ] || continue
        # shellcheck disable=SC2086 # numbers
        ranges $list
        if [ "$1" = host ]; then
            echo "host $pod $out peak=$peak oom=$oom"
        else
            echo "$1 $out $pod"
        fi
    done
}

told_world() {
    w=$worlds
    while [ "$w" -gt 0 ]; do
        eval "bad=\$bad_$w living=\$((started_$w - ended_$w - lost_$w))"
        if [ -n "$reason" ] || [ "${code:-0}" != 0 ] && [ -n "$bad$living" ] &&
            [ "$bad$living" != 0 ]; then
            return 0
        fi
        w=$((w - 1))
    done
    w=$worlds
}

# --- whose fault it was ----------------------------------------------------------------------------

# Sets `blame_rank` and `blame_pod` to the first rank of the world $1 that ended badly or vanished.
blame_first() {
    first=$(bad_ends "$1" | head -n 1)
    [ -n "$first" ] || first=$(lines_of "$1" lost 2 | head -n 1 | cut -d' ' -f 2-)
    [ -n "$first" ] || return 1
    blame "$first"
}

# ... to the first that ended well.
blame_left() {
    blame "$(lines_of "$1" end 7 | grep ' status 0 ' | head -n 1 | cut -d' ' -f 2-)"
}

blame() {
    # shellcheck disable=SC2086 # rank, host and more
    set -- $1
    blame_rank=$1 how=${4-} value=${5-} kills=${7:-0} orphan=${8:-0}
    pod_name "$2"
    blame_pod=$pod
}

# Sets `cause`, `blame_rank` and `blame_pod` for a command that failed by itself.
find_cause() {
    cause=$reason
    [ -z "$cause" ] || return 0
    if [ "${code:-0}" = 0 ]; then
        # Some launchers return 0 whatever became of the ranks.
        [ "$w" -gt 0 ] || return 0
        eval "[ -n \"\$bad_$w\" ] || [ \$((started_$w - ended_$w)) -gt 0 ]" || return 0
    fi
    cause=CommandFailed blame_rank=- blame_pod=-
    for number in $dropped; do
        pod_name "$number"
        eval "cause=\${up_$number:+ConnectionLost} why=\$why_$number"
        cause=${cause:-WorkerLost} blame_pod=$pod
        text="the connection to $pod broke${why:+ ($why)}"
        return 0
    done
    if [ "$w" -eq 0 ] || ! blame_first "$w"; then
        blame_daemon || [ "$w" -eq 0 ] || blame_orphans || :
        return 0
    fi
    case $how:$value:$kills:$orphan in
        ::*)
            # Ended all at once by their daemons, so none of them is to blame.
            cause=RanksLost
            eval "[ \"\$lost_$w\" = 1 ]" || blame_rank=- blame_pod=-
            blame_raised || blame_aborted || blame_unborn || :
            ;;
        *:1) cause=DaemonLost blame_rank=- ;;
        signal:*:0:*) blame_aborted || cause=RankKilled ;;
        signal:*) cause=OutOfMemory ;;
        *) cause=RankFailed ;;
    esac
    # Ranks that mpirun has ended are not to blame for what it ended them for. Open MPI 5 has those
    # end themselves with 14 that have lost another.
    case $stopped:$cause:$value in
        :RankKilled:15 | :RankKilled:9 | :RankFailed:14) find_another ;;
    esac
}

# Blames the MPI daemon that could not be run or was killed, or that failed alone; when all fail
# with a code of their own, they only follow their mpirun.
blame_daemon() {
    [ -n "$daemon_at" ] || return 1
    eval "status=\$daemon_$daemon_host"
    case $status:$daemons in
        12[67]:* | 13[1-9]:*) ;;
        *:' '*' '*) return 1 ;;
    esac
    pod_name "$daemon_host"
    cause=DaemonFailed blame_rank=- blame_pod=$pod
    text="the MPI daemon on $pod ended with exit code $status"
}

# ... where its ranks never came, and those of other hosts were ended for that.
blame_unborn() {
    eval "[ \"\$started_$w\" -lt \"\$size_$w\" ]" && blame_daemon
}

# Blames the MPI daemon whose ranks were seen without it.
blame_orphans() {
    eval "[ -n \"\$orphan_$w\" ] && pod=\$orphans_of_$w" || return 1
    cause=DaemonLost blame_rank=- blame_pod=$pod
    text="the MPI daemon on $pod is gone"
}

# Blames the only rank whose Python program has failed: it ended all others, and itself, by MPI.
blame_raised() {
    eval "raised=\$raised_$w"
    case $raised in
        '' | ' '*' '*) return 1 ;;
    esac
    blame_rank=${raised# }
    eval "pod_name \$h_${w}_$blame_rank"
    cause=RankFailed blame_pod=$pod
}

# Blames the only rank that said that it ends all others.
blame_aborted() {
    # shellcheck disable=SC2046 # kind, rank, host and code
    set -- $(lines_of "$w" aborted 2)
    [ $# -eq 4 ] || return 1
    pod_name "$3"
    cause=RankFailed blame_rank=$2 blame_pod=$pod
    text="rank $2 on $pod has ended all ranks by MPI_Abort($4)"
}

# Of ranks that ended within three seconds, the first that nobody has ended: dying by a signal
# takes longer to be seen than leaving with a code.
first_of_its_own() {
    since=
    bad_ends "$w" | while read -r rank host pid how value at kills orphan; do
        since=${since:-$at}
        [ $((at - since)) -le 300 ] || break
        case $how:$value in status:14 | signal:15) continue ;; esac
        echo "$rank $host $pid $how $value $at $kills $orphan"
        break
    done
}

# Where one of prterun's ranks has lost another, and all others ended by SIGTERM: the first that did
# so in that same moment. prterun takes a quarter of a second to end the rest.
first_terminated() {
    eval "run_by=\$world_$w"
    case $run_by:$value in prterun*:14) ;; *) return 0 ;; esac
    since=
    bad_ends "$w" | while read -r rank host pid how ended at kills orphan; do
        since=${since:-$at}
        [ $((at - since)) -le 15 ] || break
        [ "$how:$ended" = signal:15 ] || continue
        echo "$rank $host $pid $how $ended $at $kills $orphan"
        break
    done
}

# Whether a rank left before all others ended. Its connections close before its end can be seen, so
# one that lost it may be seen to end first, by a moment; of prterun's ranks a code of 14 means just
# that, where only one has ended well.
someone_left() {
    eval "run_by=\$world_$w"
    lines_of "$w" end 7 | {
        first='' well=0 near=
        while read -r _ _ _ _ how ended at _; do
            first=${first:-$how:$ended:$at}
            [ "$how:$ended" = status:0 ] || continue
            well=$((well + 1))
            [ $((at - ${first##*:})) -gt 50 ] || near=1
        done
        case $run_by:$value:$well:$near:$first in
            *:status:0:*) ;;
            prterun*:14:1:1:*) ;;
            *) return 1 ;;
        esac
    }
}

# The first rank that ended badly was ended: by another, by the loss of a daemon, by one that left
# before, or by one that never came.
find_another() {
    another=
    case $value in 14 | 15) another=$(first_of_its_own) ;; esac
    if [ -n "$another" ]; then
        blame "$another"
        case $how:$kills:$orphan in
            *:1) cause=DaemonLost blame_rank=- ;;
            signal:0:*) cause=RankKilled ;;
            signal:*) cause=OutOfMemory ;;
            *) cause=RankFailed ;;
        esac
        return 0
    fi
    # Daemons take the wrappers along when they kill, and Hydra's never terminate: a rank that was
    # seen to end so was ended alone, and daemons that have left since only follow.
    eval "by=\$by_$w"
    case $by:$value in
        *:9 | hydra:15) ;;
        *) if blame_orphans; then return 0; fi ;;
    esac
    if blame_daemon; then return 0; fi
    if someone_left; then
        blame_left "$w"
        cause=RankLeft
        text="rank $blame_rank on $blame_pod ended with exit code 0 but without MPI_Finalize"
        return 0
    fi
    another=$(first_terminated)
    if [ -n "$another" ]; then
        blame "$another"
        cause=RankKilled
        return 0
    fi
    eval "[ \"\$started_$w\" -lt \"\$size_$w\" ]" || return 0
    cause=StartFailed blame_rank=- blame_pod=-
    eval "text=\"only \$started_$w of \$size_$w ranks have started\""
    absent=
    for number in ${numbers#0}; do
        lines_of "$w" start 2 | grep -q "^start [0-9]* $number " || absent="$absent $number"
    done
    case $absent in
        ' '*' '*) ;;
        ' '*)
            pod_name "${absent# }"
            blame_pod=$pod
            text="$text, none on $pod"
            ;;
    esac
}

facts() {
    echo "mpi-agent 1"
    echo "level full"
    echo "ended ${reason:-Command} ${code:--}"
    told_world
    find_cause
    [ -z "$text" ] || printf 'text %.600s\n' "$text"
    [ -z "$cause" ] || echo "cause $cause $blame_rank $blame_pod"
    for number in $numbers; do
        eval "up=\$up_$number why=\$why_$number pod=\$pod_$number"
        [ -n "$up" ] || printf 'down %s %.200s\n' "$pod" "$why"
    done
    [ "$w" -gt 0 ] || return 0
    eval "echo \"world size=\$size_$w started=\$started_$w ended=\$ended_$w lost=\$lost_$w runs=$worlds\""
    eval "bad=\$bad_$w raised=\$raised_$w foreign=\$foreign_$w"
    [ -z "$bad" ] || bad_ends "$w" | head -n 12 | while read -r rank host pid how value _ kills _; do
        pod_name "$host"
        echo "bad $rank $pod $how=$value pid=$pid oom=$kills"
    done
    [ -z "$raised" ] || lines_of "$w" raised 2 | head -n 4 | while read -r _ rank host rest; do
        pod_name "$host"
        printf 'raised %s %s %.300s\n' "$rank" "$pod" "$rest"
    done
    eval "lost=\$lost_$w living=\$((started_$w - ended_$w - lost_$w))"
    [ "$lost" -eq 0 ] || by_host lost
    [ "$living" -eq 0 ] || by_host open
    [ -z "$foreign" ] || by_host foreign
    by_host host
}

summary() {
    target=${MPI_TRAINER_TERMINATION:-/dev/termination-log}
    size=0
    {
        facts 2>/dev/null | while IFS= read -r line; do
            size=$((size + ${#line} + 1))
            if [ "$size" -gt 4000 ]; then
                echo more
                break
            fi
            printf '%s\n' "$line"
        done
    } 2>/dev/null >"$target"
}
