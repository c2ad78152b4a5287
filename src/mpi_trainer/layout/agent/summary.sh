# shellcheck shell=sh disable=SC2034,SC2154 # its variables are those of whoever reads it
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
    [ ! -r "$run/world.$1" ] || grep "^$2 " "$run/world.$1" | sort -n -k "$3"
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

# Prints `$2 RANKS POD` for every host with ranks in the state $3 of the world $1.
by_state() {
    for number in $numbers; do
        set -- "$1" "$2" "$3"
        list=$(lines_of "$1" start 2 | while read -r _ rank host _; do
            eval "state=\${r_${1}_$rank}"
            [ "$host $state" != "$number $3" ] || echo "$rank"
        done)
        [ -n "$list" ] || continue
        pod_name "$number"
        # shellcheck disable=SC2086 # numbers
        ranges $list
        echo "$2 $out $pod"
    done
}

foreign_of() {
    for number in $numbers; do
        list=$(lines_of "$1" foreign 2 | while read -r _ rank host _; do
            [ "$host" != "$number" ] || echo "$rank"
        done)
        [ -n "$list" ] || continue
        pod_name "$number"
        # shellcheck disable=SC2086 # numbers
        ranges $list
        echo "foreign $out $pod"
    done
}

hosts_of() {
    for number in $numbers; do
        list=$(lines_of "$1" start 2 | while read -r _ rank host _; do
            [ "$host" != "$number" ] || echo "$rank"
        done)
        [ -n "$list" ] || continue
        eval "pod=\$pod_$number peak=\$peak_$number oom=\$oom_$number"
        # shellcheck disable=SC2086 # numbers
        ranges $list
        echo "host $pod $out peak=$peak oom=$oom"
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

# ... to the first that ended at all.
blame_left() {
    blame "$(lines_of "$1" end 7 | head -n 1 | cut -d' ' -f 2-)"
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
        eval "cause=\${up_$number:+ConnectionLost}"
        cause=${cause:-WorkerLost} blame_pod=$pod
        return 0
    done
    if [ "$w" -eq 0 ] || ! blame_first "$w"; then
        for number in $numbers; do
            eval "status=\${daemon_$number-}"
            [ -n "$status" ] || continue
            pod_name "$number"
            cause=DaemonFailed blame_pod=$pod
            text="the MPI daemon on $pod ended with exit code $status"
            return 0
        done
        return 0
    fi
    case $how:$value:$kills:$orphan in
        ::*)
            # Ended all at once by their daemons, so none of them is to blame.
            cause=RanksLost
            eval "[ \"\$lost_$w\" = 1 ]" || blame_rank=- blame_pod=-
            ;;
        *:1) cause=DaemonLost blame_rank=- ;;
        signal:*:0:*) cause=RankKilled ;;
        signal:*) cause=OutOfMemory ;;
        *) cause=RankFailed ;;
    esac
    # Ranks that mpirun has ended are not to blame for what it ended them for.
    if [ -z "$stopped" ] && [ "$cause:$value" = RankKilled:15 ]; then
        lines_of "$w" end 7 | head -n 1 | grep -q ' status 0 ' || return 0
        blame_left "$w"
        cause=RankLeft
        text="rank $blame_rank on $blame_pod ended with exit code 0 but without MPI_Finalize"
    fi
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
    bad_ends "$w" | head -n 12 | while read -r rank host pid how value _ kills _; do
        pod_name "$host"
        echo "bad $rank $pod $how=$value pid=$pid oom=$kills"
    done
    lines_of "$w" raised 2 | head -n 4 | while read -r _ rank host rest; do
        pod_name "$host"
        printf 'raised %s %s %.300s\n' "$rank" "$pod" "$rest"
    done
    by_state "$w" lost lost
    by_state "$w" open running
    foreign_of "$w"
    hosts_of "$w"
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
