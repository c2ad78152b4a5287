#!/bin/sh
# Stands in front of ssh on the launcher: the job's hosts are reached with the job's configuration,
# by whatever program, the launcher itself without any connection, and every other host as if this
# were not here.

real=
rest=$PATH:
while [ -n "$rest" ] && [ -z "$real" ]; do
    entry=${rest%%:*}
    rest=${rest#*:}
    # shellcheck disable=SC3013 # dash, busybox and bash know -ef, and POSIX since 2024
    [ ! -x "$entry/ssh" ] || [ "$entry/ssh" -ef "$0" ] || real=$entry/ssh
done
if [ -z "$real" ]; then
    echo "ssh: not found; MPI starts its ranks over SSH: add an OpenSSH client to the image" >&2
    exit 127
fi

# The host is the first word that is neither an option nor an option's value.
host='' skip='' given='' words=0
for word in "$@"; do
    words=$((words + 1))
    if [ -n "$skip" ]; then
        skip=
        continue
    fi
    case $word in
        -F*)
            given=1
            [ "$word" != -F ] || skip=1
            ;;
        -*[BbcDEeIiJLlmOopQRSWw]) skip=1 ;;
        -*) ;;
        *)
            host=${word#*@}
            break
            ;;
    esac
done
# Where the launcher runs ranks too, some MPIs do not know their own host by the name in its file.
# shellcheck disable=SC3028 # no shell's own: the container runtime sets it
own=${HOSTNAME:-$(uname -n)}
if [ "${host%%.*}" = "$own" ] && [ "$#" -gt "$words" ]; then
    shift "$words"
    exec /bin/sh -c "$*"
fi
config=${MPI_TRAINER_SCRATCH:-/run/mpi-agent}/ssh/config
if [ -z "$given" ] && [ -n "$host" ] && grep -qsF -- " $host " "$config.hosts"; then
    # The first value counts: horovodrun asks for less.
    exec "$real" -F "$config" -o StrictHostKeyChecking=yes "$@"
fi
exec "$real" "$@"
