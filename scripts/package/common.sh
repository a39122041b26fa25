# shellcheck shell=bash
# shellcheck disable=SC2034 # the variables are for the scripts that source this one
# Sourced by the scripts that make and test packages: what is built, and into which folders.

# shellcheck source=scripts/need.sh
. scripts/need.sh

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
# The release of cargo-deb that makes the Debian package. Other releases may give other bytes.
cargo_deb_version=3.8.0
work=target/packaging

# The time of everything in an archive: that of the last commit. It is not exported to cargo, because some libraries are built
# again when SOURCE_DATE_EPOCH changes.
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null)} ||
    fail "this is no git checkout: set SOURCE_DATE_EPOCH to the time of the release, in seconds"
export LC_ALL=C TZ=UTC

# The programs of the packages.
programs() { echo agentcfg-server agentcfg; }

# Builds the programs and copies them into a folder, each alone, so that none gets the features that another one needs. A static
# program needs no file of the system: the flag is for its last step alone, so that both kinds share all libraries.
build_programs() { # dynamic or static, profile, folder
    local kind=$1 profile=$2 folder=$3 flags=() built=${CARGO_TARGET_DIR:-target}
    [ "$kind" = dynamic ] || flags=(-- -C target-feature=+crt-static)
    cargo rustc --locked --profile "$profile" -p agentcfg-server --bin agentcfg-server "${flags[@]}"
    cargo rustc --locked --profile "$profile" -p agentcfg-cli --bin agentcfg "${flags[@]}"
    if [ "$profile" = dev ]; then built+=/debug; else built+=/$profile; fi
    mkdir -p "$folder"
    local program
    for program in $(programs); do
        # Tests may run the one that is there.
        cp "$built/$program" "$folder/$program.new"
        mv "$folder/$program.new" "$folder/$program"
    done
}

# cargo-deb of the one release, installed below target/tools unless it is there. Optimised, it takes three times as long to
# compile and makes a package no faster, because the compression is a library in C.
cargo_deb() {
    local tools=$PWD/target/tools
    if [[ " $("$tools/bin/cargo-deb" --version 2>/dev/null)" != *" $cargo_deb_version" ]]; then
        CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
            cargo install cargo-deb --locked --version "$cargo_deb_version" --root "$tools" >&2
    fi
    SOURCE_DATE_EPOCH=$epoch "$tools/bin/cargo-deb" "$@"
}
