#!/bin/sh
# What the dashboard needs, each done again only where what it is made of has changed:
# `tools/dashboard.sh packages`, `build`, or `browser` (Debian's Chromium, for tests).
set -eu

cd "$(dirname "$0")/../dashboard"
built=../src/mpi_trainer/server/static

fail() {
    printf 'error: %s\n\nhint: %s\n' "$1" "$2" >&2
    exit 1
}

sum() { cat "$@" | cksum | tr ' ' -; }

packages() {
    stamp=node_modules/.made-$(sum package.json package-lock.json)
    [ ! -e "$stamp" ] || return 0
    command -v npm >/dev/null || fail "the dashboard needs Node.js and npm" \
        "Install Node.js 20.19 or newer."
    node -e 'const [a, b] = process.versions.node.split(".").map(Number);
        process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' ||
        fail "the dashboard needs Node.js 20.19 or newer, this is $(node --version)" \
            "Install a newer one; .venv and everything else work without it."
    echo "setting up dashboard/node_modules" >&2
    npm ci --no-progress --loglevel=error
    touch "$stamp"
}

build() {
    made_of=$(git ls-files --cached --others --exclude-standard . | LC_ALL=C sort |
        grep -v '\.test\.tsx\{0,1\}$' | tr '\n' '\0' | xargs -0 cat 2>/dev/null | cksum | tr ' ' -)
    stamp=$built/.made-$made_of
    [ ! -e "$stamp" ] || return 0
    npm run --silent build -- --logLevel=warn
    touch "$stamp"
}

# At the version of Debian's release, as all its packages that tests need (decision 5).
browser() {
    [ -z "${CHROMIUM-}" ] || return 0
    ! command -v chromium >/dev/null || return 0
    command -v apt-get >/dev/null || fail "missing: chromium" \
        "Install Chromium, or name it: make browser CHROMIUM=/path/to/chromium"
    [ "$(id -u)" = 0 ] || fail "missing: chromium" \
        "Ask an administrator to run: apt-get install chromium"
    echo "installing Debian packages: chromium" >&2
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null
}

case ${1-} in
packages) packages ;;
build) packages && build ;;
browser) browser ;;
*) fail "what to do?" "Say packages, build or browser." ;;
esac
