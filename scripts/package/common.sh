# shellcheck shell=bash
# Sourced by the scripts that make and test packages: what is built, and into which folders.

# shellcheck source=scripts/need.sh
. scripts/need.sh

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
# The release of cargo-deb that makes the Debian package. Other releases may give other bytes.
cargo_deb_version=3.8.0
work=target/packaging

# The time of everything in an archive: that of the last commit.
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null) ||
        fail "this is no git checkout: set SOURCE_DATE_EPOCH to the time of the release, in seconds"
fi
export SOURCE_DATE_EPOCH
export LC_ALL=C TZ=UTC

# Whether the client has a command-line program, agentcfg. Then it is a part of each package.
has_cli() { grep -q '^cli = ' agentcfg-client/Cargo.toml; }

# The programs of the packages.
programs() { if has_cli; then echo agentcfg-server agentcfg; else echo agentcfg-server; fi; }

# Builds the programs, each alone, so that none gets the features that another one needs. Arguments are for cargo.
build_programs() {
    cargo build --locked "$@" -p agentcfg-server
    if has_cli; then
        cargo build --locked "$@" -p agentcfg-client --features cli --bin agentcfg
    fi
}

# The folder below a target folder into which cargo writes what it builds with this profile.
profile_folder() { if [ "$1" = dev ]; then echo debug; else echo "$1"; fi; }

# cargo-deb of the one release, installed below target/tools unless it is there.
cargo_deb() {
    local tools=$PWD/target/tools
    if [[ " $("$tools/bin/cargo-deb" --version 2>/dev/null)" != *" $cargo_deb_version" ]]; then
        cargo install cargo-deb --locked --version "$cargo_deb_version" --root "$tools" >&2
    fi
    "$tools/bin/cargo-deb" "$@"
}
