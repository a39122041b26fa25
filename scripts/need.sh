# shellcheck shell=bash
# Sourced by the other scripts: `need` installs a missing program, or fails and says how to install it.

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

need() { # program, Debian package
    command -v "$1" >/dev/null && return
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        install_package "$2"
    fi
    command -v "$1" >/dev/null || fail "$1 is missing; install it with: apt-get install $2"
}

install_package() { # Debian package
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y --no-install-recommends "$1" ||
        { apt-get update && apt-get install -y --no-install-recommends "$1"; }
}
