#!/usr/bin/env bash
# Makes an image as an archive of the OCI image layout, without a container engine, and prints its path. The same programs and
# the same commit give the same bytes. Arguments: the folder with statically linked programs, and the folder to write into.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/package/common.sh
. scripts/package/common.sh

[ $# = 2 ] || fail "usage: $0 PROGRAMS FOLDER"
programs=$1
case $(uname -m) in
x86_64) architecture=amd64 ;;
aarch64) architecture=arm64 ;;
*) fail "no name is known for the architecture $(uname -m)" ;;
esac
# The user of the process, who owns the data directory. No system has an account of this number.
user=65532
created=$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)
umask 022

root=$work/image-root layout=$work/image
rm -rf "$root" "$layout"
mkdir -p "$root"/{etc,usr/bin,usr/share/doc/agentcfg,var/lib/agentcfg} "$layout/blobs/sha256"
chmod 700 "$root/var/lib/agentcfg"
for program in $(programs); do
    [ -x "$programs/$program" ] || fail "$programs/$program is missing"
    [[ $(readelf -l "$programs/$program") != *INTERP* ]] || fail "$programs/$program is linked dynamically"
    install -m 755 "$programs/$program" "$root/usr/bin/$program"
    strip --strip-all "$root/usr/bin/$program"
done
echo "agentcfg:x:$user:$user:agentcfg:/var/lib/agentcfg:/sbin/nologin" >"$root/etc/passwd"
echo "agentcfg:x:$user:" >"$root/etc/group"
# Names are looked up in /etc/hosts, which the engine writes, and then by DNS.
echo "hosts: files dns" >"$root/etc/nsswitch.conf"
cp LICENSE-MIT LICENSE-APACHE "$root/usr/share/doc/agentcfg"
scripts/package/licences.sh | gzip -9n >"$root/usr/share/doc/agentcfg/third-party-licences.gz"

archive() { # folder, further arguments of tar
    tar --format=ustar --sort=name --mtime="@$epoch" --numeric-owner -C "$@"
}
layer=$work/layer.tar
archive "$root" --create --owner=0 --group=0 --exclude=var/lib/agentcfg --file="$PWD/$layer" etc usr var
archive "$root" --append --owner=$user --group=$user --file="$PWD/$layer" var/lib/agentcfg
layer_sum=$(sha256sum <"$layer" | cut -d' ' -f1)

size=0 digest=
blob() { # reads the content of a blob; sets digest and size
    cat >"$layout/blob"
    digest=$(sha256sum <"$layout/blob" | cut -d' ' -f1)
    size=$(stat -c %s "$layout/blob")
    mv "$layout/blob" "$layout/blobs/sha256/$digest"
}
type=application/vnd.oci.image
blob < <(gzip -"${FAST_PACKAGES:-9}" -n <"$layer")
layers='[{"mediaType":"'$type'.layer.v1.tar+gzip","digest":"sha256:'$digest'","size":'$size'}]'
labels='{"org.opencontainers.image.title":"agentcfg","org.opencontainers.image.description":"Configurations, live status and credentials of a fleet of agents","org.opencontainers.image.version":"'$version'","org.opencontainers.image.created":"'$created'","org.opencontainers.image.licenses":"MIT OR Apache-2.0","org.opencontainers.image.source":"'$(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml)'"}'
blob <<EOF
{"created":"$created","architecture":"$architecture","os":"linux","config":{"User":"$user:$user","ExposedPorts":{"7420/tcp":{}},"Env":["PATH=/usr/bin","AGENTCFG_LISTEN=0.0.0.0:7420","AGENTCFG_DATA=/var/lib/agentcfg"],"Entrypoint":["/usr/bin/agentcfg-server"],"Cmd":["serve"],"Volumes":{"/var/lib/agentcfg":{}},"WorkingDir":"/var/lib/agentcfg","Healthcheck":{"Test":["CMD","/usr/bin/agentcfg-server","healthcheck"],"Interval":10000000000,"Timeout":10000000000,"StartPeriod":120000000000,"StartInterval":1000000000},"Labels":$labels,"StopSignal":"SIGTERM"},"rootfs":{"type":"layers","diff_ids":["sha256:$layer_sum"]},"history":[{"created":"$created","created_by":"scripts/package/oci.sh"}]}
EOF
config='{"mediaType":"'$type'.config.v1+json","digest":"sha256:'$digest'","size":'$size'}'
blob <<EOF
{"schemaVersion":2,"mediaType":"$type.manifest.v1+json","config":$config,"layers":$layers,"annotations":$labels}
EOF
cat >"$layout/index.json" <<EOF
{"schemaVersion":2,"mediaType":"$type.index.v1+json","manifests":[{"mediaType":"$type.manifest.v1+json","digest":"sha256:$digest","size":$size,"platform":{"architecture":"$architecture","os":"linux"},"annotations":{"org.opencontainers.image.ref.name":"$version"}}]}
EOF
printf '{"imageLayoutVersion":"1.0.0"}' >"$layout/oci-layout"

mkdir -p "$2"
result=$2/agentcfg-$version-oci-$architecture.tar
archive "$layout" --create --owner=0 --group=0 blobs index.json oci-layout >"$result"
rm -rf "$root" "$layout" "$layer"
echo "$result"
