# shellcheck shell=sh disable=SC2034,SC2154 # its variables are those of whoever reads it
# Whether all ranks are quiet together, and where they are then. Sourced by launch.
#
# Nothing is ended for it, and nothing concluded: when no rank has read or written anything for
# suspect_seconds, all hosts are asked where their ranks are (places.sh), and where each rank has
# either used no CPU or stayed in one call, that is told once, in the launcher's log:
#
#   quiet form=1 seconds=N ranks=N groups=N   so long, all ranks of the one world that there is
#   place ranks=0-1,3 on=POD,POD FIELDS       as many lines as groups: ranks at the same place, the
#                                             pods of the first few, and the fields of places.sh
#   moving seconds=N                          one of them goes on, after so long
#
# While it holds, the file `quiet` is in the scratch folder: whoever asks for it learns without
# reading the log that there is something to read.
#
# All are asked again later, so that one that computes can be told from one that waits, and a mark
# taken back: after suspect_seconds, and twice as long each time, up to half an hour.

begin_quiet() {
    [ ! -e "$scratch/quiet" ] || rm -f "$scratch/quiet"
    all_quiet='' looking='' look_at=0 look_every=$suspect_seconds told_still='' placed=0
}

# The host $1 says $2 with the fields $3.
heard_quiet() {
    case $2 in
        quiet)
            numeric "$3" || return 0
            no_octal "$3"
            eval "quiet_$1=$number"
            some_quiet=1
            ;;
        place)
            case $looking:$3 in
                ?*:rank=[0-9]*\ world=*) ;;
                *) return 0 ;;
            esac
            rank=${3#rank=}
            rank=${rank%% *}
            numeric "$rank" || return 0
            rest=${3#* }
            printf '%s %s %.3000s\n' "$1" "$rank" "${rest#* }" >>"$run/places"
            ;;
        placed)
            numeric "$3" || return 0
            no_octal "$3"
            placed=$((placed + number))
            ;;
    esac
}
some_quiet=

# Sets `living` to the number of ranks where all of them belong to one world that has started whole.
only_world() {
    living=0 w=$worlds
    while [ "$w" -gt 0 ] && [ "$w" -gt $((worlds - 8)) ]; do
        eval "alive=\$((started_$w - ended_$w - lost_$w)) started=\$started_$w size=\$size_$w"
        if [ "$alive" -gt 0 ]; then
            if [ "$living" -gt 0 ] || [ "$started" -lt "$size" ]; then
                living=0
                return 0
            fi
            living=$alive
        fi
        w=$((w - 1))
    done
}

judge_quiet() {
    [ -n "$some_quiet" ] || return 0
    count=0
    for number in $numbers; do eval "count=\$((count + \${quiet_$number:-0}))"; done
    only_world
    if [ "$living" -eq 0 ] || [ "$count" -ne "$living" ]; then
        [ "$count" -gt 0 ] || some_quiet=
        go_on
        begin_quiet
        return 0
    fi
    if [ -z "$all_quiet" ]; then all_quiet=$((now - suspect_seconds)) look_at=$now; fi
    if [ -n "$looking" ]; then
        if [ "$placed" -ge "$living" ]; then
            looking=
            tell_places
        elif [ $((now - looking)) -ge 300 ]; then
            looking='' look_at=$((now + look_every))
        fi
    elif [ "$now" -ge "$look_at" ]; then
        looking=$now placed=0
        : >"$run/places"
        for number in $numbers; do order "$number" where; done
    fi
}

go_on() {
    [ -n "$told_still" ] || return 0
    tell_quiet moving "seconds=$((now - all_quiet))"
    told_still=
    rm -f "$scratch/quiet"
}

tell_quiet() {
    printf 'mpi-agent| %s %s %s %s\n' "$now" "$pod_0" "$1" "$2" >&2
}

tell_places() {
    if [ "$(grep -c . "$run/places")" -ne "$living" ] ||
        grep -qv -e ' idle=1 ' -e ' same=1 ' -e ' ending=1 ' "$run/places"; then
        go_on
    elif [ -z "$told_still" ]; then
        told_still=1
        sort -k 3 -k 2,2n "$run/places" | group_places >"$run/groups"
        tell_quiet quiet "form=1 seconds=$((now - all_quiet)) ranks=$living groups=$(grep -c . "$run/groups")"
        while IFS= read -r group; do tell_quiet place "$group"; done <"$run/groups"
        : >"$scratch/quiet"
    fi
    look_at=$((now + look_every))
    [ "$look_every" -ge 1800 ] || look_every=$((look_every * 2))
}

# Of sorted lines `HOST RANK FIELDS`, those with the same fields as one; sixteen at most.
group_places() {
    shared='' list='' hosts='' groups=0
    while read -r host rank fields; do
        if [ "$fields" != "$shared" ]; then
            end_group
            shared=$fields list='' hosts=' '
        fi
        list="$list $rank"
        case $hosts in
            *" $host "* | *" "*" "*" "*" "*" ") ;;
            *) hosts="$hosts$host " ;;
        esac
    done
    end_group
}

end_group() {
    [ -n "$list" ] || return 0
    groups=$((groups + 1))
    [ "$groups" -le 16 ] || return 0
    # shellcheck disable=SC2086 # numbers
    ranges $list
    on=
    for number in $hosts; do
        pod_name "$number"
        on="$on${on:+,}$pod"
    done
    printf 'ranks=%.600s on=%s %s\n' "$out" "$on" "$shared"
}
