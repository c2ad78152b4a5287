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

# MPI's daemons need a folder for temporary files, also where the root file system is read-only.
find_tmp() {
    [ -w "${TMPDIR:-/tmp}" ] && return 0
    TMPDIR=$MPI_TRAINER_SCRATCH/tmp
    export TMPDIR
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

# Sets `now` to seconds since the epoch, by a clock that nobody sets, and starts no process where
# `prepare` has left the time of the boot.
read_now() {
    read_uptime
    [ -n "$boot" ] || [ ! -r "$scratch/boot" ] || read -r boot <"$scratch/boot"
    [ -n "$boot" ] || boot=$(($(date +%s) - uptime / 100))
    now=$((boot + uptime / 100))
}
boot=

# Sets `peak` and `oom` of this container: its highest memory in bytes, and how many of its
# processes the kernel has killed for memory; empty where the machine does not tell.
read_memory() {
    peak='' oom=''
    [ -n "$memory_events" ] || find_memory_events
    group=${memory_events%/*}
    case $memory_events in
        */memory.events) [ ! -r "$group/memory.peak" ] || read -r peak <"$group/memory.peak" ;;
        */memory.oom_control) read -r peak <"$group/memory.max_usage_in_bytes" ;;
        *) return 0 ;;
    esac
    while read -r key value; do
        [ "$key" != oom_kill ] || oom=$value
    done <"$memory_events"
}

# Sets `memory_events` to the file that counts kills in this container's control group, of either
# version. The group's path is the machine's where the container has no view of its own.
memory_events=
find_memory_events() {
    memory_events=none
    while IFS=: read -r _ controllers path; do
        case ,$controllers, in
            ,,) set -- "/sys/fs/cgroup$path" /sys/fs/cgroup memory.events ;;
            *,memory,*) set -- "/sys/fs/cgroup/memory$path" /sys/fs/cgroup/memory memory.oom_control ;;
            *) continue ;;
        esac
        [ ! -r "$2/$3" ] || memory_events=$2/$3
        [ ! -r "$1/$3" ] || memory_events=$1/$3
    done 2>/dev/null </proc/self/cgroup
}
