# shellcheck shell=bash
# Sourced by the other scripts: makes sure that a program is there, and says how to get it when it may not be installed.

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
