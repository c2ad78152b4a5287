# shellcheck shell=sh disable=SC2034,SC2154 # its variables are those of whoever reads it
# Whether a rank waits inside MPI for another. Sourced by watch.
#
# Asked only when a rank of the same world has ended with 0 while others go on, which is how it
# looks when a rank leaves without MPI_Finalize, but also when ranks simply have no more to do.
# A rank waits when a process of its has an MPI library in memory, has not closed the socket of its
# start-up service (finalizing does), and over four seconds has neither computed nor read nor written.
# Polling counts as waiting: it is CPU time spent in the kernel, while computing is not.

# Prints the pids of the process $1 and all below it.
family() {
    echo "$1"
    # shellcheck disable=SC2013 # numbers
    for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do family "$child"; done
}

# Whether the process $1 is in MPI: library mapped, start-up socket (PMI_FD) open.
in_mpi() {
    grep -qs -e '/libmpi[^/]*\.so' -e '/libmpich[^/]*\.so' "/proc/$1/maps" || return 1
    fd=$(tr '\0' '\n' 2>/dev/null <"/proc/$1/environ" | sed -n 's/^PMI_FD=//p')
    [ -z "$fd" ] || [ -e "/proc/$1/fd/$fd" ]
}

# Prints user time, system time, bytes read and written of the process $1.
effort() {
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
    # shellcheck disable=SC2086 # the fields behind the program's name
    set -- "$1" ${stat##*) }
    user=${13} system=${14}
    io=$(sed -n 's/^[rw]char: //p' "/proc/$1/io" 2>/dev/null | tr '\n' ' ')
    echo "$user $system $io"
}

# Answers for every live rank of the world $1.
look() {
    for entry in $live; do
        name=${entry%%,*}
        find_live "$name"
        [ "$world" = "$1" ] || continue
        pid=${entry##*,}
        (
            answer=works
            for member in $(family "$pid"); do
                in_mpi "$member" || continue
                answer=waits
                before=$(effort "$member")
                sleep 4
                after=$(effort "$member")
                idle "$before" "$after" || answer=works
                break
            done
            echo "$answer $world ${name%%.*}"
        ) &
    done
}

# Whether the efforts $1 and $2, four seconds apart, are those of a process that waits.
idle() {
    # shellcheck disable=SC2086 # numbers
    set -- $1 $2
    [ $# -eq 8 ] || return 1
    [ "$3 $4" = "$7 $8" ] || return 1
    user=$(($5 - $1)) system=$(($6 - $2))
    [ "$user" -le 40 ] || [ $((system * 4)) -ge "$user" ]
}
