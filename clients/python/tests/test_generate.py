"""What is generated from the OpenAPI document."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

import generate
from agentcfg._sync_methods import SyncMethods
from conftest import ROOT, Server

SOURCE = ROOT / "clients/python/src/agentcfg"
LEFT_OUT = {"/api/sessions", "/api/workspaces/export", "/mcp", "/openapi.json"}


def test_it_is_what_the_document_of_the_server_gives(server: Server) -> None:
    document = httpx.get(f"{server.url}/openapi.json").json()
    for name, text in generate.files(document).items():
        assert (SOURCE / name).read_text(encoding="utf-8") == text, name


def test_each_operation_has_a_method(server: Server) -> None:
    paths: dict[str, dict[str, Any]] = httpx.get(f"{server.url}/openapi.json").json()["paths"]
    operations = {
        operation["operationId"]
        for path, verbs in paths.items()
        if path not in LEFT_OUT and not path.startswith("/api/agents/model-calls/")
        for verb, operation in verbs.items()
        if verb != "parameters"
    }
    methods = {name for name in vars(SyncMethods) if not name.startswith("_")} - {"send"}
    assert methods == {generate.snake(operation) for operation in operations}


def run(document: Path, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "clients/python/tools/generate.py", document, folder, *options]
    return subprocess.run(command, capture_output=True, text=True)


def test_what_is_stale_is_named(tmp_path: Path) -> None:
    given = json.loads((ROOT / "agentcfg-server/src/api/openapi.json").read_text(encoding="utf-8"))
    document = tmp_path / "openapi.json"
    document.write_text(json.dumps(given))
    assert "types.py, _sync_methods.py, _async_methods.py are not" in run(document, tmp_path, "--check").stderr
    assert run(document, tmp_path).returncode == 0
    assert run(document, tmp_path, "--check").returncode == 0
    given["components"]["schemas"]["Agent"]["properties"]["model"]["type"] = "string"
    document.write_text(json.dumps(given))
    stale = run(document, tmp_path, "--check")
    assert stale.returncode == 1 and stale.stderr.startswith("error: types.py are not what the OpenAPI document gives")
