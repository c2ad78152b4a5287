# shellcheck shell=sh disable=SC2030,SC2031,SC2034,SC2154 # its variables are those of whoever reads it
# The launcher's last words: what became of every rank, in at most 4096 bytes. Sourced by launch.
#
# One fact a line, read by summary.py; what they mean is concluded there, and never here. The world
# told of is the one that the proof is about, else one that failed, else the last:
#
#   mpi-agent 2                                   the version of this form
#   level LEVEL
#   ended WHAT CODE FIELDS                        `command`, or a proof of verdict.sh; the command's
#                                                 exit code; stopped=1 where a signal came for it
#   waits DOWN ALL                                workers that do not answer, and all of them
#   dropped POD up|down WHY                       control channels that broke, in order
#   daemon POD STATUS                             MPI daemons that failed, in order
#   down POD WHY                                  hosts that do not answer
#   world size=N started=N ended=N lost=N runs=N by=WHO name=NAME
#                                                 runs: how many worlds there were
#   bad RANK POD status|signal=N pid=N oom=N at=N orphan=N
#                                                 ranks that ended badly, in the order of their
#                                                 ends (1/100 s), and the first of every other kind
#   well RANK POD at=N count=N                    the first that ended with 0, and how many did
#   aborted RANK POD CODE                         said that they end all ranks
#   orphans POD                                   the first host whose ranks had lost their daemon
#   absent POD                                    workers without a rank, of a start not complete
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
    case " $proved" in
        *" world="*)
            w=${proved#*world=}
            w=${w%% *}
            return 0
            ;;
    esac
    while [ "$w" -gt 0 ]; do
        eval "bad=\$bad_$w living=\$((started_$w - ended_$w - lost_$w))"
        if [ -n "$proof" ] || [ "${code:-0}" != 0 ] && [ -n "$bad$living" ] &&
            [ "$bad$living" != 0 ]; then
            return 0
        fi
        w=$((w - 1))
    done
    w=$worlds
}

# --- what is told --------------------------------------------------------------------------------

facts() {
    echo "mpi-agent 2"
    echo "level full"
    echo "ended ${proof:-command} ${code:--}${proved:+ $proved}${stopped:+ stopped=1}"
    told_hosts
    told_world
    [ "$w" -gt 0 ] || return 0
    eval "printf 'world size=%s started=%s ended=%s lost=%s runs=%s by=%.20s name=%.40s\n' \
        \"\$size_$w\" \"\$started_$w\" \"\$ended_$w\" \"\$lost_$w\" $worlds \"\$by_$w\" \"\$world_$w\""
    told_ends
    eval "orphan=\$orphan_$w pod=\$orphans_of_$w"
    [ -z "$orphan" ] || echo "orphans $pod"
    told_absent
    eval "raised=\$raised_$w foreign=\$foreign_$w"
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

told_hosts() {
    down=0 all=0
    for number in ${numbers#0}; do
        all=$((all + 1))
        eval "[ -n \"\$up_$number\" ]" || down=$((down + 1))
    done
    echo "waits $down $all"
    told=0
    for number in $dropped; do
        [ "$told" -lt 4 ] || break
        told=$((told + 1))
        eval "up=\${up_$number:+up} why=\$why_$number pod=\$pod_$number"
        printf 'dropped %s %s %.200s\n' "$pod" "${up:-down}" "$why"
    done
    told=0
    for entry in $daemons; do
        [ "$told" -lt 8 ] || break
        told=$((told + 1))
        pod_name "${entry%=*}"
        echo "daemon $pod ${entry#*=}"
    done
    told=0
    for number in $numbers; do
        eval "up=\$up_$number why=\$why_$number pod=\$pod_$number"
        if [ -n "$up" ] || [ "$told" -ge 8 ]; then continue; fi
        told=$((told + 1))
        printf 'down %s %.200s\n' "$pod" "$why"
    done
}

told_ends() {
    told=0 kinds=' '
    bad_ends "$w" | while read -r rank host pid how value at kills orphan; do
        kind=" $how.$value.$kills.$orphan "
        case $kinds in
            *"$kind"*) [ "$told" -lt 8 ] || continue ;;
            *) kinds="$kinds$kind" ;;
        esac
        [ "$told" -lt 12 ] || break
        told=$((told + 1))
        pod_name "$host"
        echo "bad $rank $pod $how=$value pid=$pid oom=$kills at=$at orphan=$orphan"
    done
    well=$(lines_of "$w" end 7 | grep -c ' status 0 ')
    [ "$well" -eq 0 ] || lines_of "$w" end 7 | grep ' status 0 ' | {
        read -r _ rank host _ _ _ at _
        pod_name "$host"
        echo "well $rank $pod at=$at count=$well"
    }
    lines_of "$w" aborted 2 | head -n 2 | while read -r _ rank host ended; do
        pod_name "$host"
        echo "aborted $rank $pod $ended"
    done
}

told_absent() {
    eval "[ \"\$started_$w\" -lt \"\$size_$w\" ]" || return 0
    by_host host >/dev/null
    told=0
    for number in ${numbers#0}; do
        eval "list=\$ranks_$number"
        if [ -n "$list" ] || [ "$told" -ge 2 ]; then continue; fi
        told=$((told + 1))
        pod_name "$number"
        echo "absent $pod"
    done
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
