# shellcheck shell=sh disable=SC2034,SC2154 # its variables are those of whoever reads it
# How long the ranks here have been quiet, and where they are. Sourced by watch.
#
# A rank is quiet while it and all below it read and write nothing, so it prints nothing either. That
# alone means little, since a rank may compute for hours. So `where` looks twice, some time apart:
#
#   idle=1     of a core it has used no more than a hundredth while it was quiet
#   same=1     its Python program has been in one and the same call all the time between: asked by
#              SIGURG, see sitecustomize.py
#   ending=1   its Python program is over, and the process is not
#   mpi=1      it has an MPI library in memory
#   frames     FILE:LINE:FUNCTION of its main thread, the innermost first, with | in between
#   calls      what is called in the line of the innermost that has a file
#
# Nothing is concluded here. A rank that is not asked pays for a look at two files, every tenth of
# suspect_seconds. Only a process that holds the file of its rank open is ever sent a signal, and
# what it writes there is not counted.

# NAME=BYTES,SINCE,TICKS of every live rank: what it had read and written, since when that has not
# changed, and its CPU time then.
activity='' told_quiet=''

# Adds the process $1 and all below it to `members`.
find_members() {
    members="$members $1"
    for list in "/proc/$1/task"/*/children; do
        children=
        [ ! -r "$list" ] || read -r children <"$list"
        for child in $children; do find_members "$child"; done
    done
}

# Sets `bytes` and `ticks` of all members, of the rank $1; fails where one of them does not tell.
measure() {
    bytes=0 ticks=0
    [ ! -s "$ranks/.$1.stack" ] || bytes=-$(size_of "$ranks/.$1.stack")
    for member in $members; do
        [ -d "/proc/$member" ] || continue
        read=
        while read -r key value; do
            case $key:$value in
                [rw]char::*[!0-9]*) ;;
                [rw]char::*) bytes=$((bytes + value)) read=1 ;;
            esac
        done <"/proc/$member/io"
        [ -n "$read" ] || return 1
        stat=
        read -r stat <"/proc/$member/stat"
        # shellcheck disable=SC2086 # the fields behind the program's name
        set -- ${stat##*) }
        case ${12-}${13-} in '' | *[!0-9]*) return 1 ;; esac
        ticks=$((ticks + ${12} + ${13}))
    done
}

# In bytes; 0 where there is no such file.
size_of() {
    size=$(wc -c 2>/dev/null <"$1") || size=0
    echo "$((size))"
}

# Looks at all ranks, and tells when they begin or cease to be quiet together.
sample() {
    # What is being written by those that were asked is not in their files yet.
    [ ! -e "$scratch/asking" ] || return 0
    read_uptime
    before=$activity activity='' count=0 quiet=1
    for entry in $live; do
        name=${entry%%,*} members=''
        find_members "${entry##*,}"
        if measure "$name"; then
            case $before in
                *" $name=$bytes,"*)
                    kept=${before##*" $name=$bytes,"}
                    kept=${kept%% *}
                    ;;
                *) kept=$uptime,$ticks ;;
            esac
            activity="$activity $name=$bytes,$kept "
            [ $((uptime - ${kept%,*})) -ge $((suspect_seconds * 100)) ] || quiet=
        else
            quiet=
        fi
        count=$((count + 1))
    done
    if [ -n "$quiet" ] && [ "$count" -gt 0 ]; then
        [ "$told_quiet" = "$count" ] || echo "quiet $count"
        told_quiet=$count
    elif [ -n "$told_quiet" ]; then
        told_quiet=
        echo "quiet 0"
    fi
}

# Sets `every` to the ticks between two samples.
find_interval() {
    every=$((suspect_seconds / 10))
    [ "$every" -ge 1 ] || every=1
    [ "$every" -le 30 ] || every=30
}

# Sets `owner` to the one of `members` that tells where it is, into the file $1; none is possible.
find_owner() {
    owner=
    [ -f "$1" ] || return 0
    for member in $members; do
        for descriptor in "/proc/$member/fd"/*; do
            # shellcheck disable=SC3013 # dash, busybox and bash know -ef, and POSIX since 2024
            [ "$descriptor" -ef "$1" ] || continue
            owner=$member
            return 0
        done
    done
}

# Sets `frames` to those in the text $1.
read_frames() {
    frames=$(
        printf '%s\n' "$1" | sed -n 's/^  File "\(.*\)", line \([0-9]*\) in \(.*\)$/\1:\2:\3/p' |
            head -n 8 | tr -c '[:graph:]\n' '_' | tr '|' '_' | sed 's/^.*\(.\{160\}\)$/\1/' | tr '\n' '|'
    )
    frames=${frames%|}
}

# Prints the names that are called in the line of the innermost of the frames on standard input whose
# source can be read; $1 is the process.
print_calls() {
    while IFS= read -r frame; do
        case $frame in '  File "'*'", line '[0-9]*) ;; *) continue ;; esac
        file=${frame#*\"}
        file=${file%\", line *}
        line=${frame##*\", line }
        line=${line%% *}
        case $file:$line in
            '<'*) continue ;;
            *:*[!0-9]* | *:????????*) return 0 ;;
            /*) ;;
            *) file=/proc/$1/cwd/$file ;;
        esac
        [ -f "$file" ] && [ -r "$file" ] || return 0
        text=$(sed -n "$line{s/#.*//;p;q;}" "$file" | cut -c 1-400 | tr -cd '[:graph:] ')
        case $text in *import*mpi4py* | *mpi4py*import*) printf import.mpi4py && return 0 ;; esac
        # What stands before each parenthesis.
        printf '%s\n' "$text" | tr '(' '\n' | sed -e '$d' -e 's/ *$//' -e 's/.*[^A-Za-z0-9_.]//' |
            grep . | head -n 8 | cut -c 1-60 | tr '\n' ','
        return 0
    done
}

has_mpi() {
    for member in $members; do
        ! grep -qs -e '/libmpi[^/]*\.so' "/proc/$member/maps" || return 0
    done
    return 1
}

# Asks every rank that can be asked; what the rank number N tells comes in its file after size_N.
# Takes a second: of two signals that wait together, another thread of the process may take the
# first, and would tell nothing, since it is none of Python's.
ask_ranks() {
    count=0 owners=''
    for entry in $live; do
        count=$((count + 1)) members=''
        file=$ranks/.${entry%%,*}.stack
        find_members "${entry##*,}"
        find_owner "$file"
        eval "owner_$count=\$owner size_$count=$(size_of "$file")"
        [ -z "$owner" ] || { kill -URG "$owner" && owners="$owners $owner"; }
    done
    sleep 1
    for owner in $owners; do kill -WINCH "$owner"; done
}

# Sets `said` to what the rank number $1, of the record $2, has told since it was asked.
read_answer() {
    eval "from=\$((size_$1 + 1)) owner=\$owner_$1"
    said=
    [ -z "$owner" ] || said=$(tail -c "+$from" "$ranks/.$2.stack" 2>/dev/null | head -n 200)
}

# Answers for every live rank, after a fifth of suspect_seconds.
where() {
    gap=$((suspect_seconds / 5))
    [ "$gap" -ge 2 ] || gap=2
    [ "$gap" -le 60 ] || gap=60
    ask_ranks
    sleep "$gap"
    count=0
    for entry in $live; do
        count=$((count + 1))
        read_answer "$count" "${entry%%,*}"
        read_frames "$said"
        case $said in *returned*) frames=returned ;; esac
        eval "frames_$count=\$frames"
    done
    ask_ranks
    sleep 1
    count=0
    read_uptime
    for entry in $live; do
        count=$((count + 1))
        tell_place "${entry%%,*}" "${entry##*,}"
    done
    rm -f "$scratch/asking"
    echo "placed $count"
}

# Of the rank number `count`, of the record $1, with the process $2.
tell_place() {
    find_live "$1"
    members=
    find_members "$2"
    read_answer "$count" "$1"
    read_frames "$said"
    calls='' idle=0 same=0 ending=0 mpi=0
    [ -z "$owner" ] || calls=$(printf '%s\n' "$said" | print_calls "$owner")
    eval "earlier=\$frames_$count"
    if [ -n "$frames" ] && [ "$frames" = "$earlier" ]; then same=1; fi
    case $activity in
        *" $1="*)
            kept=${activity##*" $1="}
            kept=${kept%% *}
            if measure "$1" && [ "$bytes" = "${kept%%,*}" ]; then
                kept=${kept#*,}
                [ $(((ticks - ${kept#*,}) * 100)) -gt $((uptime - ${kept%,*})) ] || idle=1
            fi
            ;;
    esac
    [ ! -e "$ranks/.$1.ending" ] || ending=1
    ! has_mpi || mpi=1
    # echo would take a backslash in a file's name for a new line.
    printf '%s\n' "place rank=$rank world=$world idle=$idle same=$same ending=$ending mpi=$mpi frames=$frames calls=$calls"
}
