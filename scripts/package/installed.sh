# shellcheck shell=bash
# shellcheck disable=SC2154 # `work` is set by common.sh
# Sourced by the tests of packages: checks, and a server that runs in another root. Sets `url` to its address.

check() { # what, command…
    local what=$1
    shift
    "$@" >"$work/check.log" 2>&1 || {
        cat "$work/check.log" >&2
        fail "$what"
    }
    echo "ok: $what"
}

equal() { # found, expected
    [ "$1" = "$2" ] || {
        printf 'expected: %s\nfound:    %s\n' "$2" "$1"
        return 1
    }
}

server=
trap 'if [ -n "$server" ]; then kill -9 "$server"; fi' EXIT

start() { # command that becomes the server
    local line
    : >"$work/stdout"
    # `exec`, so that the signals reach the server.
    (exec "$@" >"$work/stdout" 2>"$work/stderr") &
    server=$!
    for _ in $(seq 300); do
        line=$(head -1 "$work/stdout")
        case $line in "listening on "*)
            # shellcheck disable=SC2034 # read by the scripts that source this one
            url=${line#listening on }
            return
            ;;
        esac
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    cat "$work/stderr" >&2
    fail "the server did not start"
}

stop() { # ends the server in order
    kill "$server"
    wait "$server" || {
        cat "$work/stderr" >&2
        fail "the server did not end with exit status 0"
    }
    server=
}

status() { # arguments of curl
    curl -s -o "$work/body" -w '%{http_code}' "$@"
}
