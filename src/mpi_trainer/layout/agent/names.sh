#!/bin/sh
# Stands before a launcher's command where nothing else of the agent does: DNS learns of a pod some
# seconds after it runs, and an mpirun that asks earlier fails.
#
#   names COMMAND [ARGUMENT...]
#
#   MPI_TRAINER_HOSTFILE  the hosts, one a line (/etc/mpi/hostfile)
#
# Guarantee: the command replaces this once every name in the hostfile is known, with its arguments,
# descriptors and signals untouched. How long pods may take to run is not for a script to say; but
# where DNS has known no name of the cluster for 110 s, or there is nothing to ask it with, the
# command starts all the same, and says itself what is wrong.

hostfile=${MPI_TRAINER_HOSTFILE:-/etc/mpi/hostfile}
how=getent
command -v getent >/dev/null || how=ssh
if ! command -v "$how" >/dev/null || [ ! -r "$hostfile" ]; then exec "$@"; fi

# Whether DNS knows $1. Whatever ssh says of a name that it knows, it says something else.
known() {
    [ "$how" = ssh ] || {
        getent hosts "$1" >/dev/null
        return
    }
    case $(ssh -F /dev/null -o BatchMode=yes -o ConnectTimeout=1 -p 1 -- "$1" : 2>&1 </dev/null) in
        *"resolve hostname"*) return 1 ;;
    esac
}

# Sets `unknown` to the first name that is not known, nothing where all are.
find_unknown() {
    unknown=
    while read -r host _; do
        host=${host%%:*}
        case $host in '' | '#'*) continue ;; esac
        known "$host" && continue
        unknown=$host
        return 0
    done <"$hostfile"
}

# Whether DNS can be used at all: it knows the job's Service, or every cluster's own.
usable() {
    service=${unknown#*.} suffix=
    case $service in *.svc.*) suffix=.${service#*.svc.} ;; esac
    known "$service" || known "kubernetes.default.svc$suffix"
}

trap 'exit 143' TERM INT HUP
began=$(date +%s)
worked=$began tell=$((began + 5))
while find_unknown && [ -n "$unknown" ]; do
    ! usable || worked=$(date +%s)
    now=$(date +%s)
    if [ $((now - worked)) -ge 110 ]; then
        echo "mpi-agent: DNS knows no name of this cluster: check the pod's dnsPolicy" >&2
        break
    fi
    if [ "$now" -ge "$tell" ]; then
        echo "mpi-agent: waiting until DNS knows $unknown" >&2
        tell=$((now + 5 + (now - began) / 2))
    fi
    sleep 1
done
trap - TERM INT HUP
exec "$@"
