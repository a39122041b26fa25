#!/usr/bin/env bash
# The Python client in clients/python.
#   generate    writes its types and methods from the OpenAPI document of the server
#   check       types and methods that are fresh, pyright, ruff, and all tests, among them those of its documentation;
#               the server under test is AGENTCFG_TEST_BINARY, else target/debug/agentcfg-server
#   pack DIR    makes the wheel and the source archive of a release, of the same bytes each time, and prints their paths
#   installed WHEEL
#               tests the wheel in a new virtual environment that has nothing but its dependencies and the test runner
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/package/common.sh
. scripts/package/common.sh

client=clients/python
environment=$(realpath -m "${CARGO_TARGET_DIR:-target}/python")
openapi=$PWD/agentcfg-server/src/api/openapi.json
export PYTHONDONTWRITEBYTECODE=1
usage() { fail "the commands are generate, check, pack DIR and installed WHEEL"; }

# The release of pyright is pinned, so that its advice to take a later one is not wanted.
export PYRIGHT_PYTHON_IGNORE_WARNINGS=1

generate() { "$environment/bin/python" "$client/tools/generate.py" "$openapi" "$client/src/agentcfg" "$@"; }

use_binary() {
    AGENTCFG_TEST_BINARY=$(realpath -m "${AGENTCFG_TEST_BINARY:-${CARGO_TARGET_DIR:-target}/debug/agentcfg-server}")
    export AGENTCFG_TEST_BINARY
    [ -x "$AGENTCFG_TEST_BINARY" ] || fail "there is no $AGENTCFG_TEST_BINARY: cargo build -p agentcfg-server"
}

check() {
    local own
    own=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' "$client/src/agentcfg/_version.py")
    [ "$own" = "$version" ] || fail "$client has the version $own, the server $version"
    generate --check
    use_binary
    cd "$client"
    "$environment/bin/ruff" check --quiet --no-cache
    "$environment/bin/ruff" format --quiet --no-cache --check
    "$environment/bin/pyright" --pythonpath "$environment/bin/python"
    # On a busy machine an event can come later than a test allows: what fails gets a second try.
    local pytest=("$environment/bin/python" -m pytest -o "cache_dir=$environment/test-cache")
    "${pytest[@]}" && return
    "${pytest[@]}" --last-failed --last-failed-no-failures none
    echo "FLAKY clients/python: what failed first has passed then"
}

pack() { # folder
    mkdir -p "$1"
    local out name=agentcfg-$version
    out=$(realpath "$1")
    # The licences are links in the checkout, and the modes of files there follow the umask.
    rm -rf "$work/python"
    mkdir -p "$work/python"
    cp -rL "$client/src" "$client/pyproject.toml" "$client/README.md" "$client"/LICENSE-* "$work/python"
    find "$work/python" -name __pycache__ -prune -exec rm -rf {} +
    chmod -R u=rwX,go=rX "$work/python"
    (
        export SOURCE_DATE_EPOCH=$epoch
        cd "$work/python"
        "$environment/bin/python" -m flit_core.wheel --outdir "$out" . >/dev/null
        "$environment/bin/python" -c "import sys, flit_core.buildapi as flit; flit.build_sdist(sys.argv[1])" "$out"
        # Who installs from the source archive gets the same wheel.
        tar -xf "$out/$name.tar.gz"
        "$environment/bin/python" -m flit_core.wheel --outdir "$PWD/again" "$name" >/dev/null
        cmp "again/$name-py3-none-any.whl" "$out/$name-py3-none-any.whl"
    )
    rm -rf "$work/python"
    echo "$out/$name-py3-none-any.whl"
    echo "$out/$name.tar.gz"
}

installed() { # wheel
    local folder=$PWD/$work/python-installed
    use_binary
    rm -rf "$folder"
    python3 -m venv "$folder"
    "$folder/bin/pip" install --quiet --disable-pip-version-check --constraint tests/sdk/requirements.txt "$1" pytest
    if "$folder/bin/python" -c 'import openai' 2>/dev/null; then fail "the wheel depends on openai"; fi
    # The tests alone are beside what is installed.
    cp -r "$client/tests" "$folder/tests"
    (
        cd "$folder/tests"
        "$folder/bin/python" -c 'import agentcfg; assert "site-packages" in agentcfg.__file__, agentcfg.__file__' ||
            fail "the tests would not import the wheel"
        "$folder/bin/python" -m pytest -q -p no:cacheprovider test_retries.py test_client.py test_mirror.py \
            -k "retries or creation or followed or memory or asynchronous or dead"
    )
    rm -rf "$folder"
}

case "${1:-} $#" in
"generate 1" | "check 1" | "pack 2" | "installed 2") ;;
*) usage ;;
esac
# The packages of the tests, unless they were installed after the last change of their list.
[ "$environment/agentcfg-requirements" -nt tests/sdk/requirements.txt ] || scripts/python.sh
"$@"
