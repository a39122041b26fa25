#!/usr/bin/env bash
# Checks the dependency rules of ARCHITECTURE.md.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/need.sh
. scripts/need.sh

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

# No dependency needs a newer Rust than the crates say. Clippy (incompatible_msrv) compares what they use of the standard library.
need jq jq
newer=$(cargo metadata --locked --format-version 1 | jq -r '
    def minor: split(".")[1] | tonumber;
    (.packages[] | select(.name == "agentcfg-core").rust_version | minor) as $own
    | .packages[] | select(.rust_version != null and (.rust_version | minor) > $own) | "\(.name) \(.version)"')
[ -z "$newer" ] || fail "these need a newer Rust than rust-version in Cargo.toml: $newer"

# What an app compiles that embeds the service with a store of its own.
engine=$(cargo tree --locked -p agentcfg-core --no-default-features --features engine -e normal --prefix none |
    cut -d' ' -f1 | sort -u | wc -l)
[ "$engine" -le 55 ] || fail "agentcfg-core with the feature engine has $engine crates, more than 55"
grep -q "is $engine crates" README.md || fail "README.md must say that the feature engine is $engine crates"

# rustls panics in an app that has two crypto providers in its tree, so that each crate has the one of its features, and a
# library by default that of rustls.
provider() { # package, features, provider
    local found
    # shellcheck disable=SC2086 # the features are words of their own
    found=$(cargo tree --locked -p "$1" $2 -e normal,features -i rustls --depth 1 --prefix none |
        sed -n 's/^rustls feature "\(ring\|aws_lc_rs\)".*/\1/p' | sort -u | paste -sd' ')
    [ "$found" = "$3" ] || { echo "error: $1 $2 has the crypto provider '$found', not '$3'" >&2; exit 1; }
    echo "$1 $2: the crypto provider ${found:-of the app}"
}

for crate in agentcfg-client agentcfg-postgres agentcfg-etcd; do
    provider $crate "" aws_lc_rs
    provider $crate "--no-default-features --features tls-ring" ring
    provider $crate "--no-default-features" ""
done
provider agentcfg-server "" ring
provider agentcfg-server "--no-default-features --features process,tls-aws-lc" aws_lc_rs
provider agentcfg-server "--no-default-features" ""
provider agentcfg-cli "" ring

refuse agentcfg-core "--all-features" hyper http hyper-util axum tower-http tonic prost tokio-postgres
refuse agentcfg-core "--no-default-features" redb argon2 jsonwebtoken tokio
# What compiles C comes with the features that need it: published keys and TLS. There is one library of cryptography that does.
refuse agentcfg-core "--no-default-features --features redb,conformance" ring rustls jsonwebtoken
refuse agentcfg-server "" aws-lc-rs openssl reqwest
refuse agentcfg-postgres "" redb hyper http tonic
# etcd is called by gRPC, which needs HTTP/2; without generated code.
refuse agentcfg-etcd "" redb axum tower-http tokio-postgres prost-build tonic-build
# An app that mounts the API needs nothing of the server's process.
process="clap clap_complete clap_mangen toml redb tokio-postgres deadpool-postgres tonic prost prometheus-client tracing-subscriber mimalloc opentelemetry opentelemetry_sdk"
# shellcheck disable=SC2086
refuse agentcfg-server "--no-default-features" $process
# shellcheck disable=SC2086
refuse agentcfg-example-axum "" $process
refuse agentcfg-client "" redb argon2 jsonwebtoken tokio-postgres deadpool-postgres tonic
refuse agentcfg-cli "" redb argon2 jsonwebtoken tokio-postgres deadpool-postgres tonic prost
