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

refuse agentcfg-core "--features redb,postgres,jwks,tls,schema,conformance" hyper http hyper-util axum tower-http tonic prost
# etcd is called by gRPC, which needs HTTP/2: that comes with its feature alone, and without generated code.
refuse agentcfg-core "--no-default-features --features etcd" axum tower-http redb tokio-postgres prost-build tonic-build
refuse agentcfg-core "--no-default-features" redb argon2 jsonwebtoken tokio
# What compiles C comes with the features that need it: published keys and TLS. There is one library of cryptography that does.
refuse agentcfg-core "--no-default-features --features local-sessions,redb,conformance" ring rustls jsonwebtoken
refuse agentcfg-server "" aws-lc-rs openssl
# An app that mounts the API needs nothing of the server's process.
process="clap clap_complete clap_mangen toml redb tokio-postgres deadpool-postgres tonic prost prometheus-client tracing-subscriber mimalloc"
# shellcheck disable=SC2086
refuse agentcfg-server "--no-default-features" $process
# shellcheck disable=SC2086
refuse agentcfg-example-axum "" $process
refuse agentcfg-client "" redb argon2 jsonwebtoken tokio-postgres deadpool-postgres tonic
refuse agentcfg-cli "" redb argon2 jsonwebtoken tokio-postgres deadpool-postgres tonic prost

# The core names an engine where it is and nowhere else. The server is checked by agentcfg-server/tests/architecture, which
# reads paths rather than lines; so are its layers and its status codes.
names='\b(redb|tokio_postgres|deadpool_postgres|tonic|prost)::|\b(store|super|self|crate)::(redb|postgres|etcd)\b|\b(Redb|Postgres|Etcd)[A-Z][a-z]'
if grep -rnE "$names" --include='*.rs' agentcfg-core/src agentcfg-client/src agentcfg-cli/src \
    | grep -vE '^agentcfg-core/src/store/(redb|postgres|etcd)/' | grep -vE '^[^:]*(/tests/|tests\.rs:)' \
    | grep -vE '^[^:]+:[0-9]+: *//'; then
    echo "error: an engine is named outside its folder under store" >&2
    exit 1
fi
