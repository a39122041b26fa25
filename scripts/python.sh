#!/usr/bin/env bash
# Makes the virtual environment of the tests and of the Python client, target/python, with the packages of
# tests/sdk/requirements.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=scripts/need.sh
. scripts/need.sh

need python3 python3
environment="${CARGO_TARGET_DIR:-target}/python"
# Debian has the module `venv` without the part that installs pip.
if ! python3 -c 'import ensurepip' 2>/dev/null; then
    [ "$(id -u)" = 0 ] || fail "Python's ensurepip is missing; install it with: apt-get install python3-venv"
    install_package python3-venv
fi
[ -x "$environment/bin/pip" ] || python3 -m venv "$environment"
"$environment/bin/pip" install --quiet --disable-pip-version-check --requirement tests/sdk/requirements.txt
touch "$environment/agentcfg-requirements"
