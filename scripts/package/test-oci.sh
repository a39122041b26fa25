#!/usr/bin/env bash
# Reads an image as an engine does and runs it: user, environment and command are those of its configuration. The argument is
# the archive.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/package/common.sh
. scripts/package/common.sh
# shellcheck source=scripts/package/installed.sh
. scripts/package/installed.sh

[ $# = 1 ] || fail "usage: $0 ARCHIVE"
[ "$(id -u)" = 0 ] || fail "only root can run a program in another root"
need jq jq
need curl curl
need skopeo skopeo

image=$work/image-read root=$work/image-run
rm -rf "$image" "$root"
mkdir -p "$image" "$root"
# skopeo compares each digest and each size with those that the index and the manifest name.
check "skopeo copies the image" skopeo copy --insecure-policy "oci-archive:$1" "dir:$image/copy"
tar -xf "$1" -C "$image"
blob() { echo "$image/blobs/sha256/${1#sha256:}"; }
for file in "$image"/blobs/sha256/*; do
    check "the name of a blob is its digest" equal "$(sha256sum <"$file" | cut -d' ' -f1)" "$(basename "$file")"
done
manifest=$(blob "$(jq -r '.manifests[0].digest' "$image/index.json")")
config=$(blob "$(jq -r .config.digest "$manifest")")
for layer in $(jq -r '.layers[].digest' "$manifest"); do
    tar -xzf "$(blob "$layer")" -C "$root"
    check "the layer is the one that the configuration names" equal \
        "sha256:$(gzip -dc "$(blob "$layer")" | sha256sum | cut -d' ' -f1)" "$(jq -r '.rootfs.diff_ids[0]' "$config")"
done
of_config() { jq -r ".config.$1" "$config"; }
check "the version is in a label" equal "$(of_config 'Labels["org.opencontainers.image.version"]')" "$version"
check "the port is declared" equal "$(of_config 'ExposedPorts|keys[0]')" 7420/tcp
check "the data is a volume" equal "$(of_config 'Volumes|keys[0]')" /var/lib/agentcfg
user=$(of_config User)
check "the user is not root" test "${user%%:*}" -gt 0
owned=$(find "$root" -uid "${user%%:*}" -printf '/%P ')
check "the user owns the data directory and nothing else" equal "$owned" "/var/lib/agentcfg "

# An engine adds devices, of which the program uses these, and the names of the container.
mkdir "$root/dev"
mknod -m 666 "$root/dev/null" c 1 3
mknod -m 666 "$root/dev/random" c 1 8
mknod -m 666 "$root/dev/urandom" c 1 9
echo "127.0.0.1 resolved.test" >"$root/etc/hosts"

mapfile -t environment < <(of_config 'Env[]')
mapfile -t entry < <(of_config 'Entrypoint[]')
mapfile -t command < <(of_config 'Cmd[]')
outside=(env -i "${environment[@]}" AGENTCFG_LISTEN=127.0.0.1:0)
# The program that enters the root and drops the rights is this machine's: the image has none but its own.
inside=("$(command -v chroot)" --userspec="$user" "$root" "${entry[@]}")
start "${outside[@]}" "${inside[@]}" "${command[@]}"
check "the server is ready" equal "$(status "$url/readyz")" 200
mapfile -t healthcheck < <(of_config 'Healthcheck.Test[1:][]')
# It runs in the same root, with the same rights and variables.
asked=("${inside[@]::${#inside[@]}-${#entry[@]}}" "${healthcheck[@]}")
check "the health check says so" "${outside[@]}" "${asked[@]}"
token=$("${outside[@]}" "${inside[@]}" token --user ada)
check "a workspace can be made" equal \
    "$(status -H "Authorization: Bearer $token" --json '{"name":"Studio"}' "$url/api/workspaces")" 201
check "the dashboard is served" equal "$(status "$url/")" 200

# The C library resolves names in a statically linked program too. The server answers the database's protocol with an error,
# which shows that the connection was made.
port=${url##*:}
for name in resolved missing; do
    "${outside[@]}" AGENTCFG_DATABASE_URL="postgres://u@$name.test:$port/d?sslmode=disable" AGENTCFG_SESSION_SECRET="$(printf 's%.0s' {1..32})" \
        "${inside[@]}" serve >"$work/$name.log" 2>&1 && fail "no database is there"
done
check "a name in /etc/hosts is found" grep -q "error communicating with the server" "$work/resolved.log"
check "a name that is nowhere is not" grep -q "failed to lookup address" "$work/missing.log"
stop
"${outside[@]}" "${asked[@]}" >/dev/null 2>&1 && fail "the health check of a server that has stopped"
rm -rf "$image" "$root"
