#!/usr/bin/env bash
# Checks the dependency rules of ARCHITECTURE.md.
set -euo pipefail
cd "$(dirname "$0")/.."

refuse() { # package, features, crates that it must not pull in
    local package=$1 features=$2 tree found
    shift 2
    # shellcheck disable=SC2086 # the features are words of their own
    tree=$(cargo tree --locked -p "$package" $features -e normal --prefix none | cut -d' ' -f1 | sort -u)
    for crate in "$@"; do
        found=$(grep -x "$crate" <<<"$tree" || true)
        if [ -n "$found" ]; then
            echo "error: $package must not depend on $crate" >&2
            exit 1
        fi
    done
    echo "$package $features: $(wc -l <<<"$tree") crates, none of: $*"
}

refuse agentcfg-core "--all-features" hyper http hyper-util axum tower-http
refuse agentcfg-core "--no-default-features" redb argon2 jsonwebtoken tokio
refuse agentcfg-client "" redb argon2 jsonwebtoken tokio-postgres deadpool-postgres

# An engine is named only in its own folder under store/.
if grep -rnE '\bredb::(Database|ReadTransaction|WriteTransaction|TableDefinition)' --include='*.rs' \
    agentcfg-core/src agentcfg-server/src agentcfg-client/src | grep -v 'agentcfg-core/src/store/redb/'; then
    echo "error: the engine redb is named outside store/redb" >&2
    exit 1
fi

if grep -rnE '\b(tokio|deadpool)_postgres\b' --include='*.rs' \
    agentcfg-core/src agentcfg-server/src agentcfg-client/src | grep -v 'agentcfg-core/src/store/postgres/'; then
    echo "error: the engine PostgreSQL is named outside store/postgres" >&2
    exit 1
fi

# Only http/errors.rs maps kinds of errors to status codes.
if grep -rnE 'ErrorKind::[A-Za-z]+ *=> *StatusCode' --include='*.rs' agentcfg-server/src | grep -v 'src/http/errors.rs'; then
    echo "error: a status code is chosen outside errors.rs" >&2
    exit 1
fi
