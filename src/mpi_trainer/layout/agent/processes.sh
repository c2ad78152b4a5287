# shellcheck shell=sh disable=SC2034,SC2154 # its variables are those of whoever reads it
# Which processes belong to the job, and how to end them. Sourced by worker, watch and launch.
#
# A process of the job carries a mark in its environment, which its children inherit whatever they
# do with sessions and groups: `MPI_TRAINER_SESSION=SCRATCH` in workers, put there by `session`,
# and `MPI_TRAINER_COMMAND=SCRATCH` below the launcher's command. Only processes of the same user
# can be read, so no other is ever found.

# Prints the pids of all processes whose environment holds the words $1.
marked() {
    # shellcheck disable=SC2013 # names without blanks
    for entry in $(grep -lsF -- "$1" /proc/[0-9]*/environ); do
        entry=${entry#/proc/}
        printf '%s\n' "${entry%/environ}"
    done
}

# Sends the signal $2 to every process marked $1; fails when there was none.
signal_marked() {
    found=$(marked "$1")
    [ -n "$found" ] || return 1
    # shellcheck disable=SC2086 # pids, one a word
    kill -"$2" $found 2>/dev/null || :
}

# Ends every process marked $1: a request first, force after $2 seconds.
end_marked() {
    signal_marked "$1" TERM || return 0
    left=$(($2 * 5))
    while [ "$left" -gt 0 ] && [ -n "$(marked "$1")" ]; do
        nap
        left=$((left - 1))
    done
    signal_marked "$1" KILL || :
}

# A fifth of a second where sleep can do that.
nap() {
    sleep 0.2 2>/dev/null || sleep 1
}

# Sets `uptime` to hundredths of a second since the machine started; no process is started.
read_uptime() {
    uptime=0
    [ -r /proc/uptime ] || return 0
    read -r uptime _ </proc/uptime
    uptime=${uptime%.*}${uptime#*.}
}

# Sets `peak` and `oom` of this container: its highest memory in bytes, and how many of its
# processes the kernel has killed for memory; empty where the machine does not tell.
read_memory() {
    peak='' oom=''
    group=${MPI_TRAINER_CGROUP:-/sys/fs/cgroup}
    if [ -r "$group/memory.events" ]; then
        events=$group/memory.events
        [ ! -r "$group/memory.peak" ] || read -r peak <"$group/memory.peak"
    elif [ -r "$group/memory/memory.oom_control" ]; then
        events=$group/memory/memory.oom_control
        read -r peak <"$group/memory/memory.max_usage_in_bytes"
    else
        return 0
    fi
    while read -r key value; do
        [ "$key" != oom_kill ] || oom=$value
    done <"$events"
}
