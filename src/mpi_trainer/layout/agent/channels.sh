# shellcheck shell=sh disable=SC2034,SC2154 # its variables are those of whoever reads it
# The launcher's control channels: one SSH connection to every worker, on which `watch` runs, and a
# `watch` of the launcher's own. Sourced by launch.
#
# All start at once. A channel that breaks is opened again, for as long as the launcher lives. The
# connection is also the one that mpirun's own sessions go through (ControlPath), which spares each
# of them a key exchange. `numbers` lists the hosts: 0 is the launcher, 1 the first line of `hosts`.

open_channels() {
    numbers=0 channels=''
    pod_0=$(hostname_here) up_0='' why_0=starting seen_0=$now peak_0=- oom_0=-
    hex_0=- behind_0=0
    last=0
    read_hosts
    numbers="$numbers$new"
    number=$last
    if [ "$number" -gt 0 ] && [ -z "$ssh_program" ]; then
        proof=no-ssh
        say "this image has no ssh"
        summary
        finish 101
    fi
    set --
    for number in $numbers; do set -- "$@" "$run/$number.in"; done
    mkfifo "$@" || exit 102
    for number in ${numbers#0}; do
        eval "address=\$address_$number"
        channel "$number" "$address" >"$run/events" 2>/dev/null &
        channels="$channels $!"
    done
    channel_here >"$run/events" 2>/dev/null &
    channels="$channels $!"
}

# Reads the hosts. `last` is the number of the last of them, `new` are those that it has not had.
read_hosts() {
    : >"$run/hosts"
    number=0 domain='' new=''
    while read -r pod address _; do
        case $pod in
            '') continue ;;
            .*) domain=$pod && continue ;;
        esac
        address=${address:-$pod$domain}
        number=$((number + 1))
        [ "$number" -gt "$last" ] || continue
        new="$new $number"
        eval "address_$number=\$address pod_$number=\$pod up_$number='' why_$number='no answer yet' seen_$number=\$now late_$number="
        eval "peak_$number=- oom_$number=- hex_$number=- behind_$number=0"
    done <"$here/hosts"
    gone=''
    while [ "$last" -gt "$number" ]; do
        gone="$gone $last"
        last=$((last - 1))
    done
    last=$number
}

# Follows a job that grows or shrinks: its hosts come and go at the end of the file. A new one counts
# from its first answer on, one that is gone is not missed.
follow_hosts() {
    # shellcheck disable=SC3013 # dash, busybox and bash know -nt, and POSIX since 2024
    [ "$here/hosts" -nt "$run/hosts" ] || return 0
    read_hosts
    [ -z "$new" ] || sh "$here/prepare" launcher hosts
    for number in $gone; do
        : >"$run/$number.gone"
        numbers=$(without "$number")
    done
    for number in $new; do
        rm -f "$run/$number.gone"
        [ -p "$run/$number.in" ] || mkfifo "$run/$number.in" || return 0
        eval "address=\$address_$number"
        channel "$number" "$address" >"$run/events" 2>/dev/null &
        channels="$channels $!"
    done
    [ -z "$gone" ] || note_alive
}

without() {
    left=''
    for one in $numbers; do
        [ "$one" = "$1" ] || left="$left $one"
    done
    echo "${left# }"
}

# A host that has joined says its first word.
joined() {
    case " $numbers " in
        *" $1 "*) ;;
        *) [ -e "$run/$1.gone" ] || numbers="$numbers $1" ;;
    esac
}

hostname_here() {
    name=launcher
    [ ! -r /proc/sys/kernel/hostname ] || read -r name </proc/sys/kernel/hostname
    echo "$name"
}

channel_here() {
    exec 7>&-
    while :; do
        "$here/watch" start <>"$run/0.in" | relay 0
        echo "0 down watch ended"
        sleep 1
    done
}

channel() {
    exec 7>&-
    MPI_TRAINER_CHANNEL=$scratch
    export MPI_TRAINER_CHANNEL
    how=start tries=0
    while :; do
        [ ! -e "$scratch/ssh/$(($1 - 1)).ctl" ] || rm -f "$scratch/ssh/$(($1 - 1)).ctl"
        "$ssh_program" -F "$scratch/ssh/config" -o ControlMaster=yes -o ConnectionAttempts=1 "$2" \
            "mpi-agent-watch $how" <>"$run/$1.in" 2>"$run/$1.err" | relay "$1"
        [ ! -e "$run/$1.gone" ] || exit 0
        [ ! -e "$run/$1.up" ] || how=again
        why=
        while IFS= read -r line; do [ -z "$line" ] || why=$line; done <"$run/$1.err"
        printf '%s down %s\n' "$1" "${why:-the connection was closed}"
        nap
        nap
        # A worker that takes minutes to come is asked less often.
        tries=$((tries + 1))
        [ "$how" = again ] || [ "$tries" -lt 60 ] || sleep 3
    done
}

# What the channel $1 says of a worker that has not answered yet: $2, which is ssh's. Only that of one
# that runs counts as a lack of an answer.
answered_not() {
    case $2 in
        *"resolve hostname"*)
            eval "late_$1="
            ask_for_names "$1"
            ;;
        *"onnection refused"*) eval "late_$1=" ;;
        *) eval "late_$1=\${late_$1:-\$now}" ;;
    esac
}

# Whether DNS can be used at all, when it does not know the host $1: it knows the job's Service, or
# every cluster's own. ssh is the one program that all launchers have to ask it with.
ask_for_names() {
    [ $((now - names_asked)) -ge 10 ] || return 0
    names_asked=$now
    eval "service=\${address_$1#*.}"
    suffix=
    case $service in *.svc.*) suffix=.${service#*.svc.} ;; esac
    (
        exec 7>&-
        for name in "$service" "kubernetes.default.svc$suffix"; do
            said=$("$ssh_program" -F /dev/null -o BatchMode=yes -o ConnectTimeout=1 -p 1 "$name" : 2>&1)
            case $said in
                *"resolve hostname"*) ;;
                *) echo names known && exit ;;
            esac
        done
        echo names unknown
    ) >"$run/events" 2>/dev/null </dev/null &
}

names_are() {
    [ "$1" = unknown ] && nameless=${nameless:-$now} || nameless=
}

# Lines of one host, with its number; whole lines only, whatever the network makes of them, and as
# they are: echo would make two lines, one of them in another's name, of a backslash and an n.
relay() {
    while IFS= read -r line; do
        case $line in hello*) : >"$run/$1.up" ;; esac
        printf '%s %s\n' "$1" "$line"
    done
}

# Tells the host $1 to do $2. Opened for both, so that it never waits for a reader.
order() {
    printf '%s\n' "$2" 1<>"$run/$1.in"
}

all_up() {
    for number in $numbers; do
        eval "[ -n \"\$up_$number\" ]" || return 1
    done
}

# Writes the workers that answer to where discover_hosts.sh reads them: by name as text. One that
# joins is not among them before it can be reached.
note_alive() {
    for number in ${numbers#0}; do
        eval "[ -z \"\$up_$number\" ] || echo \"\$address_$number\""
    done | sort >"$scratch/.alive" && mv -f "$scratch/.alive" "$scratch/alive"
}

# `2 of 4 workers: a (Connection refused), b (...)`; the last words of ssh are those that matter.
missing_workers() {
    list='' count=0 all=0
    for number in $numbers; do
        [ "$number" -ne 0 ] || continue
        all=$((all + 1))
        eval "up=\$up_$number pod=\$pod_$number why=\$why_$number"
        [ -z "$up" ] || continue
        count=$((count + 1))
        why=${why##*: }
        [ "$count" -gt 4 ] || list="$list${list:+, }$pod (${why%.})"
    done
    [ "$count" -le 4 ] || list="$list, and $((count - 4)) more"
    echo "$count of $all workers: $list"
}

# Asks until every rank is known to have ended, but for two seconds at most: the ranks are ending
# just now, whatever mpirun returned, and a record may be on its way.
collect() {
    read_now
    limit=$((now + 3))
    ask
    while [ "$now" -lt "$limit" ] && { still_living || lone_daemon; }; do
        nap
        read_now
        ask
    done
}

still_living() {
    [ "$worlds" -gt 0 ] && eval "[ \$((started_$worlds - ended_$worlds - lost_$worlds)) -gt 0 ]"
}

# The command has failed, and so has one MPI daemon of several, with a code of its own. Mostly all of
# them follow their mpirun, and the others' ends are not known yet.
lone_daemon() {
    # shellcheck disable=SC2086 # numbers
    set -- $daemons
    [ "${code:-0}" != 0 ] && [ $# -eq 1 ] || return 1
    case ${1#*=} in 12[67] | 13[1-9]) return 1 ;; esac
    # shellcheck disable=SC2086
    set -- $numbers
    [ $# -gt 2 ]
}

# Lets every host that answers tell all it knows.
ask() {
    awaited=
    for number in $numbers; do
        eval "up=\$up_$number"
        [ -n "$up" ] || continue
        awaited="$awaited $number "
        order "$number" "flush 1"
    done
    while [ -n "$awaited" ] && [ "$now" -lt "$limit" ]; do next; done
}

close_channels() {
    # shellcheck disable=SC2086 # pids
    kill $channels 2>/dev/null
    for number in $numbers; do order "$number" bye; done
    signal_marked "MPI_TRAINER_CHANNEL=$scratch" TERM || :
}
