"""How the client begins, dies and ends."""

from __future__ import annotations

import asyncio
import copy
import gc
import json
import pickle
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from agentcfg import AgentCfg, AsyncAgentCfg, Client, errors
from agentcfg._cache import CacheFile, Saved
from agentcfg._follower import Follower
from agentcfg.snapshot import Snapshot
from conftest import SECONDS, Studio, Watch
from test_follower import released

URL = "http://127.0.0.1:1"
ROW: Any = json.loads(released(1, "e-c1").content)[0]


def test_a_wrong_environment_fails_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "ftp://proxy.example.com")
    with pytest.raises(ValueError, match="ftp"):
        AgentCfg(URL, "svc_test_x")

    async def run() -> None:
        cfg = AsyncAgentCfg(URL, "svc_test_x")
        with pytest.raises(ValueError, match="ftp"):
            await cfg.wait_ready()
        await cfg.close()

    asyncio.run(run())


def test_a_follower_that_dies_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise MemoryError("of the test")

    monkeypatch.setattr(Follower, "_load", fail)
    cfg = AgentCfg(URL, "svc_test_x")
    with pytest.raises(errors.AgentCfgError, match="of the test"):
        cfg.wait_ready()
    cfg.close()

    async def run() -> None:
        cfg = AsyncAgentCfg(URL, "svc_test_x")
        with pytest.raises(errors.AgentCfgError, match="of the test"):
            await cfg.wait_ready()
        await cfg.close()

    asyncio.run(run())


def test_a_cache_of_deep_arrays_is_no_cache(studio: Studio, tmp_path: Path) -> None:
    studio.agent("a")
    cache = tmp_path / "agents.json"
    cache.write_text("[" * 200_000)
    with AgentCfg(studio.server.url, studio.key(), cache=cache) as cfg:
        assert cfg.agent("a").version == 1
    assert json.loads(cache.read_text())["agents"][0]["agent_id"] == "a"


def test_a_cache_that_cannot_be_written_says_why_after_an_early_close(
    studio: Studio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    studio.agent("a")
    begun, goes_on = threading.Event(), threading.Event()
    save = CacheFile.save

    def wait(file: CacheFile, saved: Saved) -> None:
        begun.set()
        assert goes_on.wait(SECONDS)
        save(file, saved)

    monkeypatch.setattr(CacheFile, "save", wait)
    unseen: list[dict[str, Any]] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: unseen.append(context))
        cfg = AsyncAgentCfg(studio.server.url, studio.key(), cache=tmp_path / "none" / "agents.json")
        await cfg.wait_ready()
        await loop.run_in_executor(None, begun.wait, SECONDS)
        closing = asyncio.create_task(cfg.close())
        await asyncio.sleep(0)
        loop.call_later(0.05, goes_on.set)
        await closing
        assert isinstance(cfg.health.cache_error, FileNotFoundError)

    asyncio.run(run())
    gc.collect()
    assert unseen == []


def test_the_last_state_that_cannot_be_written_says_why(studio: Studio, tmp_path: Path) -> None:
    studio.agent("a")
    folder = tmp_path / "folder"
    folder.mkdir()
    with AgentCfg(studio.server.url, studio.key(), cache=folder / "agents.json") as cfg:
        Watch(cfg).live()
        assert cfg.health.cache_error is None
        shutil.rmtree(folder)
    assert isinstance(cfg.health.cache_error, FileNotFoundError)


def test_a_second_event_loop_follows_again(studio: Studio) -> None:
    studio.agent("a", model="one")
    cfg = AsyncAgentCfg(studio.server.url, studio.key())

    async def live() -> None:
        await cfg.wait_ready()
        await cfg.client.who_am_i()
        while not cfg.health.is_live:
            await asyncio.wrap_future(cfg._holder.moved())

    asyncio.run(live())
    assert not cfg.health.is_live
    # A loop that is left without an end of its tasks.
    loop = asyncio.new_event_loop()
    loop.run_until_complete(live())
    loop.close()
    assert not cfg.health.is_live
    studio.edit("a", model="two")
    studio.release("a", 2)

    async def again() -> None:
        await live()
        while cfg.agent("a").model != "two":
            await asyncio.wrap_future(cfg._holder.moved())
        await cfg.close()
        with pytest.raises(errors.NotReady):
            await AsyncAgentCfg(URL, "svc_test_x").wait_ready(0)

    asyncio.run(again())


def test_a_close_that_is_cancelled_closes_all_the_same() -> None:
    async def run() -> None:
        cfg = AsyncAgentCfg(URL, "svc_test_x")
        with pytest.raises(errors.NotReady):
            await cfg.wait_ready(0)
        closing = asyncio.create_task(cfg.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        with pytest.raises(errors.NotReady, match="closed"):
            await cfg.wait_ready()

    asyncio.run(run())


def test_a_workspace_may_be_in_upper_case(studio: Studio, tmp_path: Path) -> None:
    studio.agent("a")
    cache = tmp_path / "agents.json"
    for _ in range(2):
        with AgentCfg(studio.server.url, studio.key(), workspace=studio.workspace.upper(), cache=cache) as cfg:
            assert cfg.health.cache_error is None
            Watch(cfg).live()
    with Client(URL, "k", workspace=studio.workspace.upper()) as client:
        assert client.workspace_id() == studio.workspace


CONFIGS: list[dict[str, Any]] = [
    {"display_name": None},
    {"persona_prompt": 5},
    {"capabilities": "abc"},
    {"capabilities": [1]},
    {"parameters": [1]},
    {"parameters": {"warmth": "1"}},
    {"definition": 7},
    {"definition": {"variables": ["x"]}},
    {"definition": {"variables": {"x": 1}}},
    {"definition": {"tools": {"a": 1}}},
]
ROWS: list[dict[str, Any]] = [
    {"version": "1"},
    {"version": True},
    {"updated_at": None},
    {"config": []},
    *[{"config": {**ROW["config"], **config}} for config in CONFIGS],
]


@pytest.mark.parametrize("fields", ROWS)
def test_a_cache_with_fields_of_other_types_is_not_served(tmp_path: Path, fields: dict[str, Any]) -> None:
    file = CacheFile(tmp_path / "agents.json", None, "production")
    rows: list[Any] = [ROW, {**ROW, **fields}]
    file.save(Saved(workspace_id="w", label="production", tag="t", cursor="e-c5", agents=rows[:1], confirmed_at=1.0))
    content = json.loads((tmp_path / "agents.json").read_text())
    assert file.load() is not None
    (tmp_path / "agents.json").write_text(json.dumps({**content, "agents": rows}))
    with pytest.raises(ValueError, match="no cache file"):
        file.load()


def test_agents_and_snapshots_are_values() -> None:
    snapshot = Snapshot.of("production", [ROW])
    other = Snapshot.of("production", [ROW])
    assert len({snapshot["a"], other["a"]}) == 1
    for copied in (copy.deepcopy(snapshot), pickle.loads(pickle.dumps(snapshot))):
        assert copied == snapshot and copied.label == "production"


def test_a_mirror_is_closed_after_the_loop_that_used_it(studio: Studio) -> None:
    studio.agent("a")
    cfg = AsyncAgentCfg(studio.server.url, studio.key())

    async def use() -> None:
        await cfg.wait_ready()
        await cfg.client.who_am_i()

    asyncio.run(use())
    asyncio.run(cfg.close())
    assert cfg.agent("a").version == 1
