#!/bin/sh
# Makes .venv ready to use: `tools/setup.sh run` for the demo, `tools/setup.sh dev` for tests too.
#
# Installs what is missing, at the versions of requirements/*.txt (with hashes) and of Debian's
# current release. Where root or Linux is missing it says so and what to do. Doing it again is
# cheap: nothing happens while the requirements stay the same.
set -eu

kind=$1
cd "$(dirname "$0")/.."

fail() {
    printf 'error: %s\n\nhint: %s\n' "$1" "$2" >&2
    exit 1
}

[ "$(uname -s)" = Linux ] || fail "local runs need Linux, this is $(uname -s)" \
    "Use a Linux machine, a virtual machine or a container."

root() { [ "$(id -u)" = 0 ]; }

# Debian packages: what the product itself needs, and what its tests need beside that.
install_packages() {
    command -v apt-get >/dev/null || fail "missing: $*" \
        "Install the packages that bring them with your system's package manager."
    root || fail "missing: $*" "Ask an administrator to run: apt-get install $*"
    echo "installing Debian packages: $*" >&2
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# An ordinary user gets an sshd of its own, unpacked and not installed.
unpack_sshd() {
    target=${XDG_DATA_HOME:-$HOME/.local/share}/mpi-trainer/openssh
    [ ! -x "$target/usr/sbin/sshd" ] || return 0
    { command -v apt-get && command -v dpkg-deb; } >/dev/null || fail "sshd is not installed" \
        "Ask an administrator to install the OpenSSH server."
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    (cd "$scratch" && apt-get download -qq openssh-server libwrap0 >/dev/null 2>&1) ||
        fail "sshd is not installed and cannot be downloaded" \
            "Ask an administrator to run: apt-get install openssh-server"
    for package in "$scratch"/*.deb; do dpkg-deb -x "$package" "$scratch/root"; done
    mkdir -p "$(dirname "$target")"
    mv "$scratch/root" "$target"
    echo "unpacked an sshd for you alone" >&2
}

python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    fail "Python 3.11 or newer is needed" "Install it, or name it: make PYTHON=/path/to/python3.11"

packages=
command -v ssh >/dev/null || packages="$packages openssh-client"
"$python" -c 'import ensurepip, venv' 2>/dev/null || packages="$packages python3-venv"
if ! { command -v sshd || [ -x /usr/sbin/sshd ]; } >/dev/null; then
    if root; then packages="$packages openssh-server"; else unpack_sshd; fi
fi
if [ "$kind" = dev ]; then
    command -v shellcheck >/dev/null || packages="$packages shellcheck"
    command -v busybox >/dev/null || packages="$packages busybox"
    command -v cc >/dev/null || packages="$packages gcc libc6-dev"
    # Argo CD's scripts are tried with it.
    ! root || command -v lua5.1 >/dev/null || packages="$packages lua5.1"
    # Faults in the network are for root's pods only.
    ! root || command -v nft >/dev/null || packages="$packages nftables"
fi
# shellcheck disable=SC2086 # a list of words
[ -z "$packages" ] || install_packages $packages

lock=requirements/$kind.txt
stamp=.venv/$kind-$(cat pyproject.toml "$lock" | cksum | tr -d ' ')
[ ! -e "$stamp" ] || exit 0
echo "setting up .venv ($kind)" >&2
[ -x .venv/bin/python ] || "$python" -m venv .venv
pip() { .venv/bin/python -m pip --quiet --disable-pip-version-check "$@"; }

# uv installs in a fifth of pip's time, but knows nothing of pip's settings: where it finds no way
# to the packages, pip does.
by_uv() {
    pip install --require-hashes -r requirements/uv.txt
    index=$(pip config get global.index-url 2>/dev/null) || index=${PIP_INDEX_URL-}
    [ -z "$index" ] || export UV_DEFAULT_INDEX="$index"
    [ -z "${PIP_CERT-}" ] || export SSL_CERT_FILE="${SSL_CERT_FILE:-$PIP_CERT}"
    .venv/bin/uv pip install --quiet --python .venv/bin/python --require-hashes -r "$lock"
}
(by_uv) || {
    echo "uv could not (see above); pip installs them" >&2
    pip install --require-hashes -r "$lock"
}
pip install --no-deps --no-build-isolation --editable .
touch "$stamp"
