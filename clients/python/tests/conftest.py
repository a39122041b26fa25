"""The server under test, which `AGENTCFG_TEST_BINARY` names, and workspaces of it."""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import agentcfg
from agentcfg import AgentCfg, Change, Client, Health, types
from agentcfg._holder import Holder
from provider import Provider

ROOT = Path(__file__).parents[3]
BINARY = Path(os.environ.get("AGENTCFG_TEST_BINARY") or ROOT / "target/debug/agentcfg-server")
# The server takes each variable of its prefix as a setting.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("AGENTCFG_")}
# How long a test waits for what must come. A machine that is loaded needs a large part of it.
SECONDS = 60.0


class Server:
    """A server process with a data directory of its own, on a port that stays the same over restarts."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.settings = settings
        self.address = "127.0.0.1:0"
        self.process: subprocess.Popen[str] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def start(self) -> None:
        names = {f"AGENTCFG_{name.upper()}": value for name, value in self.settings.items()}
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                [BINARY, "serve", "--data", self.data, "--listen", self.address],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**ENVIRONMENT, **names},
            )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("listening on http://"):
                self.address = line.split("://")[1].strip()
                return
        raise AssertionError((self.folder / "log").read_text())

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None

    def command(self, *arguments: str | Path) -> str:
        done = subprocess.run([BINARY, *arguments], capture_output=True, text=True, env=ENVIRONMENT, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def token(self, user: str) -> str:
        return self.command("token", "--user", user, "--data", self.data)

    def studio(self, name: str = "studio") -> Studio:
        with Client(self.url, self.token("ada")) as owner:
            workspace = owner.create_workspace({"name": name})["id"]
        return Studio(self, workspace)


@dataclass
class Studio:
    """A workspace with a client of its owner."""

    server: Server
    workspace: str

    def __post_init__(self) -> None:
        self.owner = Client(self.server.url, self.server.token("ada"), workspace=self.workspace)

    def key(self, scope: types.Scope = "read", **fields: Any) -> str:
        body: Any = {"name": scope, "environment": "development", "scope": scope, "rate_limit": 100_000, **fields}
        return self.owner.create_api_key(body)["key"]

    def agent(self, agent_id: str, label: str | None = "production", **fields: Any) -> None:
        body: Any = {"agent_id": agent_id, "display_name": agent_id, **fields}
        self.owner.create_agent(body)
        if label is not None:
            self.owner.set_agent_label(agent_id, label, {"version": 1})

    def apply(self, names: list[str], **fields: Any) -> None:
        agents: Any = [{"agent_id": name, "display_name": name, **fields} for name in names]
        self.owner.apply_agents({"agents": agents})

    def edit(self, agent_id: str, **fields: Any) -> int:
        body: Any = fields
        version = self.owner.update_agent(agent_id, body).version
        assert version is not None
        return version

    def release(self, agent_id: str, version: int, label: str = "production") -> None:
        self.owner.set_agent_label(agent_id, label, {"version": version})


class Watch:
    """The steps of a mirror, to wait for."""

    def __init__(self, cfg: agentcfg.mirror.Mirror) -> None:
        self.cfg = cfg
        self.steps: queue.Queue[Change] = queue.Queue()
        cfg.on_change(self.steps.put)

    def next(self) -> Change:
        return self.steps.get(timeout=SECONDS)

    def health(self, condition: Callable[[Health], bool]) -> Health:
        """Wait for a state of health; each event of the mirror is looked into."""
        holder: Holder = self.cfg._holder
        deadline = time.monotonic() + SECONDS
        while True:
            moved = holder.moved()
            health = self.cfg.health
            if condition(health):
                return health
            assert time.monotonic() < deadline, health
            with contextlib.suppress(FutureTimeoutError):
                moved.result(SECONDS / 10)

    def live(self) -> Health:
        return self.health(lambda health: health.is_live)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("server"), session_rate_limit="1000000")
    yield server
    server.kill()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A server that the test may kill."""
    server = Server(tmp_path, session_rate_limit="1000000")
    yield server
    server.kill()


@pytest.fixture
def studio(server: Server) -> Iterator[Studio]:
    studio = server.studio()
    yield studio
    studio.owner.close()


@pytest.fixture
def mirror(studio: Studio) -> Iterator[Callable[..., AgentCfg]]:
    """Makes mirrors that end with the test."""
    made: list[AgentCfg] = []

    def make(**options: Any) -> AgentCfg:
        cfg = AgentCfg(studio.server.url, options.pop("key", None) or studio.key(), **options)
        made.append(cfg)
        return cfg

    yield make
    for cfg in made:
        cfg.close()


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider()
    yield provider
    provider.close()


@pytest.fixture
def silent_server() -> Iterator[str]:
    """The URL of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
