"""Runs Schemathesis on a server, in a workspace of its own. Arguments are passed on to it.

Variables of the environment: SERVER_URL, OWNER_TOKEN and OWNER_ID (a user without a workspace), FOUNDER_TOKEN (another one),
RECEIVER (the URL of a server for webhooks), CASES (requests with random content, for all operations together), SEED, and REPORT,
the file for the figures.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.request

HERE = pathlib.Path(__file__).parent
SERVER = os.environ["SERVER_URL"]
OWNER = os.environ["OWNER_TOKEN"]
FOUNDER = os.environ["FOUNDER_TOKEN"]
CASES = int(os.environ["CASES"])
SEED = os.environ["SEED"]


def call(method, target, body, token=OWNER):
    """Makes a request that must succeed, and returns what was answered."""
    request = urllib.request.Request(
        SERVER + target,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def prepare():
    """Makes what the parameters of good requests name, and returns their values by dictionary."""
    workspace = call("POST", "/api/workspaces", {"name": "Studio North"})["id"]
    agents = ["release-writer", "editor", "translator"]
    for agent in agents:
        call("POST", "/api/agents/configs", {"workspace_id": workspace, "agent_id": agent, "display_name": agent})
        for number in range(2, 5):
            call("PATCH", f"/api/agents/configs?agent_id={agent}", {"persona_prompt": f"Version {number}."})
        for label, version in [("staging", 3), ("production", 2)]:
            call("PUT", f"/api/agents/labels?agent_id={agent}&label={label}", {"version": version})
    retired = [f"retired-{number}" for number in range(10)]
    for agent in retired:
        call("POST", "/api/agents/configs", {"workspace_id": workspace, "agent_id": agent, "display_name": agent})
        call("DELETE", f"/api/agents/configs?agent_id={agent}", None)
    attributes = {"workspace_id": workspace, "name": "key", "environment": "development", "scope": "read"}
    keys = [call("POST", "/api/api-keys", attributes)["id"] for _ in range(20)]
    settings = {"workspace_id": workspace, "url": os.environ["RECEIVER"]}
    webhooks = [call("POST", "/api/webhooks", settings)["id"] for _ in range(10)]
    spares = [call("POST", "/api/workspaces", {"name": "Studio North"}, FOUNDER)["id"] for _ in range(30)]
    return {
        "workspaces": [workspace],
        "spares": spares,
        "agents": agents,
        "retired": retired,
        "keys": keys,
        "webhooks": webhooks,
    }


def main():
    with tempfile.TemporaryDirectory(prefix="schemathesis-") as folder:
        folder = pathlib.Path(folder)
        shutil.copy(HERE / "schemathesis.toml", folder)
        for name, values in prepare().items():
            (folder / f"{name}.txt").write_text("".join(f'"{value}"\n' for value in values))
        with urllib.request.urlopen(SERVER + "/openapi.json") as response:
            paths = json.load(response)["paths"]
        operations = sum(len(item.keys() & {"get", "put", "post", "patch", "delete"}) for item in paths.values())
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"{SERVER}/openapi.json", "--no-color"]
        command += ["--seed", SEED, "--max-examples", str(-(-CASES // operations))]
        command += ["--report", "json", "--report-json-path", os.environ["REPORT"], *sys.argv[1:]]
        environment = os.environ | {"PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(command, cwd=folder, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
