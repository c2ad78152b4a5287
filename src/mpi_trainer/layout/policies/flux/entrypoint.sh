#!/bin/sh
# Runs in the node's container: makes its Flux broker a part of the job's, and on the first node
# runs the job's command, which is the arguments word for word, on all of them.
set -eu
given=/etc/flux-config
root=/mnt/flux
config=$root/config
# first, hosts, resources, flags: numbers and host names, as the controller wrote them
# shellcheck source=/dev/null
. "$given/settings"

cp -R "$root/software/." /opt/software/
# After the image's own, which may have another Python.
PATH=$PATH:$root/view/bin
for site in "$root"/view/lib/python3*/site-packages; do
    PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}$site
done
FLUX_RC_EXTRA=$root/view/etc/flux/rc1.d
export PATH PYTHONPATH FLUX_RC_EXTRA

mkdir -p "$config/etc/flux/config" "$config/etc/flux/system/cron.d" "$config/etc/curve" \
    "$config/run/flux" "$config/var/lib/flux"
cp "$given/broker.toml" "$config/etc/flux/config/broker.toml"
# Flux refuses a key that others can read.
(umask 077 && cat /curve/curve.cert >"$config/etc/curve/curve.cert")
# shellcheck disable=SC2086,SC2154  # several options, from settings
flux R encode --hosts="$hosts" $resources >"$config/etc/flux/system/R"

broker() {
    flux broker --config-path="$config/etc/flux/config" \
        -Scron.directory="$config/etc/flux/system/cron.d" \
        -Stbon.fanout=256 \
        -Srundir="$config/run/flux" \
        -Sstatedir="$config/var/lib/flux" \
        -Slocal-uri="local://$config/run/flux/local" \
        -Slog-stderr-level=0 \
        -Slog-stderr-mode=local \
        "$@"
}

# shellcheck disable=SC2154  # from settings
if [ "$(hostname)" = "$first" ]; then
    if [ $# = 0 ]; then
        # Nothing to run: a cluster to work in until the job is deleted.
        broker sleep infinity
    else
        # shellcheck disable=SC2086,SC2154  # several options, from settings
        broker flux run $flags "$@"
    fi
else
    # The first node may start later, or anew.
    until broker; do
        echo "flux: the broker of $first does not answer yet; trying again in 15 s" >&2
        sleep 15
    done
fi
