"""Mirrors in processes that fork, and in those that end without closing them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from conftest import SECONDS, Studio

FORKED = """
import os, queue, sys
from agentcfg import AgentCfg
cfg = AgentCfg(sys.argv[1], sys.argv[2])
cfg.wait_ready()
steps = queue.Queue()
cfg.on_change(steps.put)
if os.fork() == 0:
    # The first use starts a thread, which may be connected when it returns.
    assert not cfg._holder.health().is_live
    assert cfg.agent("a").version == 1
    print("forked", flush=True)
    step = steps.get(timeout=20)
    print(step.after["a"].version, cfg.client.who_am_i()["type"], flush=True)
    cfg.close()
    os._exit(0)
assert os.wait()[1] == 0
print(steps.get(timeout=20).after["a"].version)
"""


def test_a_forked_process_follows_by_itself(studio: Studio) -> None:
    studio.agent("a", label="production")
    studio.edit("a", model="x")
    command = [sys.executable, "-c", FORKED, studio.server.url, studio.key()]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "forked\n"
        studio.release("a", 2)
        assert process.stdout.read() == "2 api_key\n2\n"
    assert process.returncode == 0


UNCLOSED = """
import sys
from agentcfg import AgentCfg
cfg = AgentCfg(sys.argv[1], sys.argv[2], cache="agents.json")
cfg.wait_ready()
print(cfg.agent("a").version)
"""


def test_a_process_ends_without_closing(studio: Studio, tmp_path: Path) -> None:
    studio.agent("a")
    command = [sys.executable, "-c", UNCLOSED, studio.server.url, studio.key()]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, cwd=tmp_path, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    assert json.loads((tmp_path / "agents.json").read_text())["agents"][0]["version"] == 1
