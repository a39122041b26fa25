#!/usr/bin/env bash
# Installs a Debian package into a root of its own, and starts, upgrades, removes and purges it there. Arguments: the package,
# and a later revision of it.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/package/common.sh
. scripts/package/common.sh
# shellcheck source=scripts/package/installed.sh
. scripts/package/installed.sh

[ $# = 2 ] || fail "usage: $0 PACKAGE LATER_PACKAGE"
[ "$(id -u)" = 0 ] || fail "only root can install packages into another root"
need debootstrap debootstrap
need lintian lintian
need curl curl
need systemd-analyze systemd

check "lintian finds no error and no warning" \
    lintian --fail-on error,warning --allow-root "$1"
dpkg-deb -x "$1" "$work/unpacked.new"
rm -rf "$work/unpacked"
mv "$work/unpacked.new" "$work/unpacked"
exposure=$(systemd-analyze security --offline=true --no-pager "$work/unpacked/usr/lib/systemd/system/agentcfg.service" |
    sed -n 's/.*Overall exposure level for .*: \([0-9.]*\) .*/\1/p')
check "the exposure of the unit, $exposure, is at most 1.2" awk -v found="$exposure" 'BEGIN { exit !(found != "" && found <= 1.2) }'

# The root is made once; each run works on a copy.
base=$work/debian-root root=$work/root
if [ ! -e "$base/usr/bin/dpkg" ]; then
    rm -rf "$base"
    # shellcheck source=/dev/null
    # From where apt has its packages on this machine.
    site=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -n 1)
    debootstrap --variant=minbase "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$base.new" ${site:+"$site"} >"$work/debootstrap.log" 2>&1 ||
        { tail "$work/debootstrap.log" >&2; fail "debootstrap failed"; }
    mv "$base.new" "$base"
fi
rm -rf "$root"
cp -a "$base" "$root"

in_root=(chroot --userspec=agentcfg:agentcfg "$root" /usr/bin/env -i)
start_unit() { # runs the command of the unit as its user
    local command
    read -ra command < <(sed -n 's/^ExecStart=//p' "$root/usr/lib/systemd/system/agentcfg.service")
    start "${in_root[@]}" AGENTCFG_LISTEN=127.0.0.1:0 "${command[@]}"
}
workspaces() { curl -s -H "Authorization: Bearer $token" "$url/api/workspaces"; }
install() { dpkg --root="$root" --force-confdef --force-confold -i "$1" >"$work/dpkg.log" 2>&1 || { cat "$work/dpkg.log" >&2; return 1; }; }
mode() { chroot "$root" stat -c '%a %U:%G' "$1"; }

check "it installs" install "$1"
check "the configuration is readable by root and the service alone" equal "$(mode /etc/agentcfg/config.toml)" "640 root:agentcfg"
check "the data directory is the service's alone" equal "$(mode /var/lib/agentcfg)" "700 agentcfg:agentcfg"
check "dpkg verifies each file" equal "$(dpkg --root="$root" --verify agentcfg | grep -v ' c ' || true)" ""
for program in $(programs); do
    check "$program runs and names its version" grep -qF "$version" <(chroot "$root" "/usr/bin/$program" --version)
    for file in "man/man1/$program.1.gz" "bash-completion/completions/$program" "zsh/vendor-completions/_$program" \
        "fish/vendor_completions.d/$program.fish"; do
        check "$file is there" test -s "$root/usr/share/$file"
    done
done

start_unit
check "the server is ready as the user of the unit" equal "$(status "$url/readyz")" 200
token=$("${in_root[@]}" agentcfg-server token --user ada --data /var/lib/agentcfg)
check "a workspace can be made" equal \
    "$(status -H "Authorization: Bearer $token" --json '{"name":"Studio"}' "$url/api/workspaces")" 201
stop
check "the server ended in order" grep -q "shutting down" "$work/stderr"

echo 'default_plan = "team"' >>"$root/etc/agentcfg/config.toml"
check "an upgrade installs" install "$2"
check "the upgrade keeps the configuration" grep -q '^default_plan = "team"' "$root/etc/agentcfg/config.toml"
check "the upgrade keeps the rights of the configuration" equal "$(mode /etc/agentcfg/config.toml)" "640 root:agentcfg"
start_unit
check "the upgrade keeps the data" grep -q Studio <(workspaces)
stop

check "it can be removed" dpkg --root="$root" --remove agentcfg
check "the program is gone" test ! -e "$root/usr/bin/agentcfg-server"
check "the configuration stays" test -f "$root/etc/agentcfg/config.toml"
check "the data stays" test -f "$root/var/lib/agentcfg/store.redb"
check "it installs again" install "$2"
start_unit
check "the data is served again" grep -q Studio <(workspaces)
stop

dpkg --root="$root" --purge agentcfg >"$work/purge.log" 2>&1 || { cat "$work/purge.log" >&2; fail "it can not be purged"; }
check "the purge names the folder that it leaves" grep -q "kept in /var/lib/agentcfg" "$work/purge.log"
check "the configuration is gone" test ! -e "$root/etc/agentcfg"
check "the data and its keys stay" test -f "$root/var/lib/agentcfg/store.redb" -a -f "$root/var/lib/agentcfg/session.key"
rm -rf "$root" "$work/unpacked"
