#!/bin/sh
# Runs in every pod before its program, in the same image and as the same user: makes what SSH
# needs for a user that the image may never have heard of.
#
#   prepare worker|launcher
#   prepare launcher hosts    again, for hosts that have come or gone
#
#   MPI_TRAINER_SCRATCH   a folder of this pod's own that we may write to (/run/mpi-agent)
#   MPI_TRAINER_KEYS      where the job's keys are mounted (keys, beside this script)
#
# Guarantee: SCRATCH/passwd, shown as /etc/passwd to the pod's program, names this user with
# /bin/sh as shell and a home it can write to; the user `mpi` is another name of the same. Keys are
# copied into a folder that only this user can read, because ssh refuses keys that others can.
# Danger: without write access to SCRATCH nothing can be done: exit code 102.

umask 077
role=$1 only=${2-}
here=${0%/*}
scratch=${MPI_TRAINER_SCRATCH:-/run/mpi-agent}
keys=${MPI_TRAINER_KEYS:-$here/keys}
ssh=$scratch/ssh

fail() {
    echo "mpi-agent: $1" >&2
    exit 102
}

{ mkdir -p "$ssh" "$scratch/ranks/done" "$scratch/home" "$scratch/bin" "$scratch/tmp" 2>/dev/null &&
    [ -w "$ssh" ]; } ||
    fail "cannot write to $scratch as user $(id -u); it must be a volume that this user may write to"

# The time of the boot, so that nobody has to start a process to know what time it is.
if [ -r /proc/uptime ]; then
    read -r uptime _ </proc/uptime
    echo $(($(date +%s) - ${uptime%.*})) >"$scratch/boot"
fi

# --- who we are ------------------------------------------------------------------------------

uid='' gid=''
while read -r key number _; do
    case $key in
        Uid:) uid=$number ;;
        Gid:) gid=$number && break ;;
    esac
done 2>/dev/null </proc/self/status
[ -n "$gid" ] || uid=$(id -u) gid=$(id -g)
name='' comment='' known=''
if [ -r /etc/passwd ]; then
    while IFS=: read -r entry _ number _ about _ _; do
        [ "$entry" != sshd ] || known=1
        if [ "$number" = "$uid" ] && [ -z "$name" ]; then
            name=$entry
            comment=$about
        fi
    done </etc/passwd
fi

home=${HOME-}
if [ -z "$home" ] || [ "$home" = / ] || [ ! -d "$home" ] || [ ! -w "$home" ]; then
    home=$scratch/home
fi

passwd() {
    case $name in '' | mpi) ;; *) echo "$name:x:$uid:$gid:$comment:$home:/bin/sh" ;; esac
    # A name that /etc/shadow cannot have locked: root is, in many images.
    echo "mpi:*:$uid:$gid::$home:/bin/sh"
    # The user that root's sshd drops to.
    [ -n "$known" ] || echo "sshd:*:65533:65533::/:/usr/sbin/nologin"
    if [ -r /etc/passwd ]; then
        while IFS= read -r line || [ -n "$line" ]; do
            case $line in
                "$name":* | mpi:*) ;;
                *:*:"$uid":*) ;;
                *) printf '%s\n' "$line" ;;
            esac
        done </etc/passwd
    fi
}
if [ -z "$only" ]; then
    umask 022
    passwd >"$scratch/passwd" || fail "cannot write $scratch/passwd"
    umask 077
    printf '%s\n' "$home" >"$scratch/home-is"
fi

copy() {
    [ -r "$keys/$1" ] || fail "cannot read $keys/$1 as user $uid; the job's Secret must be mounted \
there, readable for this user (fsGroup)"
    while IFS= read -r line || [ -n "$line" ]; do printf '%s\n' "$line"; done <"$keys/$1" >"$ssh/$2" ||
        fail "cannot write $ssh/$2"
}

# --- worker: an sshd that runs as anybody ------------------------------------------------------

# Approved by FIPS 140-3 throughout, and understood since OpenSSH 7.4.
kex=ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-sha2-nistp521
ciphers=aes128-gcm@openssh.com,aes256-gcm@openssh.com,aes128-ctr,aes256-ctr
macs=hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com,hmac-sha2-256,hmac-sha2-512
signatures=ecdsa-sha2-nistp521,ecdsa-sha2-nistp384,ecdsa-sha2-nistp256,rsa-sha2-512,rsa-sha2-256

server() {
    copy host-private host_key
    copy public authorized_keys
    echo "Port ${MPI_TRAINER_SSH_PORT:-2222}
${MPI_TRAINER_SSH_ADDRESS:+ListenAddress $MPI_TRAINER_SSH_ADDRESS}
HostKey $ssh/host_key
AuthorizedKeysFile $ssh/authorized_keys
ForceCommand /bin/sh $here/session $scratch
KexAlgorithms $kex
Ciphers $ciphers
MACs $macs
HostKeyAlgorithms $signatures
PubkeyAcceptedKeyTypes $signatures
AuthenticationMethods publickey
PasswordAuthentication no
PermitRootLogin prohibit-password
PermitTTY no
PermitUserRC no
DisableForwarding yes
StrictModes no
UsePAM no
UseDNS no
PidFile none
LogLevel INFO
ClientAliveInterval 5
ClientAliveCountMax 6
MaxStartups 256:30:512
MaxSessions 256" >"$ssh/sshd_config"
}

# --- launcher: a strict client -----------------------------------------------------------------

client() {
    if [ -z "$only" ]; then
        copy private id
        copy host-public host_key.pub
        read -r host_key <"$ssh/host_key.pub"
        echo "mpi-workers $host_key" >"$ssh/known_hosts"
    fi
    all=
    number=0 domain=
    {
        while read -r pod address ip port; do
            case $pod in
                '') continue ;;
                .*) domain=$pod && continue ;;
            esac
            address=${address:-$pod$domain}
            all="$all $pod $address"
            echo "Host $pod $address"
            [ -z "$ip" ] || echo "  HostName $ip"
            [ -z "$port" ] || echo "  Port $port"
            # A socket's path has room for 108 letters, and ssh adds 17 for a moment.
            [ "${#ssh}" -gt 80 ] || echo "  ControlPath $ssh/$number.ctl"
            number=$((number + 1))
        done <"$here/hosts"
        echo "Host ${all:- none}
  User ${MPI_TRAINER_SSH_USER:-mpi}
  Port 2222
  IdentityFile $ssh/id
  IdentitiesOnly yes
  HostKeyAlias mpi-workers
  UserKnownHostsFile $ssh/known_hosts
  GlobalKnownHostsFile none
  StrictHostKeyChecking yes
  CheckHostIP no
  UpdateHostKeys no
  BatchMode yes
  PreferredAuthentications publickey
  KexAlgorithms $kex
  Ciphers $ciphers
  MACs $macs
  HostKeyAlgorithms $signatures
  PubkeyAcceptedKeyTypes $signatures
  ConnectTimeout 10
  ConnectionAttempts 3
  ServerAliveInterval 5
  ServerAliveCountMax 3
  ForwardAgent no
  ForwardX11 no
  LogLevel ERROR"
    } >"$ssh/.config"
    echo "$all " >"$ssh/.config.hosts"
    # Whole at any moment: somebody may read them just now.
    mv -f "$ssh/.config" "$ssh/config" && mv -f "$ssh/.config.hosts" "$ssh/config.hosts"
}

if [ "$role" = launcher ]; then client; else server; fi
[ -z "$only" ] || exit 0

# --- what stands before programs -----------------------------------------------------------------

if [ "$role" = launcher ]; then
    cd "$scratch/bin" || fail "cannot enter $scratch/bin"
    set -- mpirun mpiexec mpiexec.hydra orterun mpirun.openmpi mpiexec.openmpi \
        mpirun.mpich mpiexec.mpich
    umask 022
    for program in "$@"; do
        printf "#!/bin/sh\nmt_agent='%s'\n. '%s/mpiexec'\n" "$here" "$here" >"$program"
    done
    printf "#!/bin/sh\n. '%s/ssh'\n" "$here" >ssh
    chmod 755 "$@" ssh
fi
: >"$scratch/prepared"
