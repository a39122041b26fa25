"""The requests that a mirror makes at the real server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentcfg import AgentCfg, AsyncClient, Snapshot, errors
from conftest import Studio, Watch

Make = Callable[..., AgentCfg]


def test_a_start_is_one_read_and_one_stream_and_a_release_costs_no_request(
    studio: Studio, mirror: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    opened = AsyncClient._opened

    async def noted(self: AsyncClient, call: Any, *arguments: Any) -> Any:
        asked.append(call.path)
        return await opened(self, call, *arguments)

    monkeypatch.setattr(AsyncClient, "_opened", noted)
    names = [f"agent-{number:02}" for number in range(33)]
    studio.apply(names)
    studio.owner.promote_agent_labels({"from": "latest", "to": "production"})
    key, cache = studio.key(), tmp_path / "agents.json"
    cfg = mirror(key=key, workspace=studio.workspace, cache=cache)
    cfg.wait_ready()
    watch = Watch(cfg)
    watch.live()
    assert list(cfg.snapshot) == names
    for version in (2, 3):
        studio.edit(names[5], model=f"m{version}")
        studio.release(names[5], version)
        assert watch.next().changed == (names[5],)
        assert cfg.agent(names[5]).model == f"m{version}"
    studio.apply(names, model="of all")
    studio.owner.promote_agent_labels({"from": "latest", "to": "production"})
    assert watch.next().changed == tuple(names)
    assert asked == ["/api/agents/released", "/api/changes"]
    # The state is exactly that of the list, and the file has it.
    cfg.close()
    rows = studio.owner.list_released_agents(label="production").value
    assert json.loads(cache.read_text())["agents"] == rows
    assert dict(cfg.snapshot) == dict(Snapshot.of("production", rows))
    again = mirror(key=key, workspace=studio.workspace, cache=cache)
    again.wait_ready()
    assert again.snapshot == cfg.snapshot


def test_an_unchanged_list_is_not_sent_again(
    studio: Studio, mirror: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    studio.agent("a")
    cache = tmp_path / "agents.json"
    key = studio.key()
    mirror(key=key, cache=cache).close()
    first = mirror(key=key, cache=cache)
    first.wait_ready()
    first.close()
    statuses: list[int] = []
    opened = AsyncClient._opened

    async def noted(self: AsyncClient, call: Any, *arguments: Any) -> Any:
        try:
            return await opened(self, call, *arguments)
        except errors.NotModified as same:
            assert call.path == "/api/agents/released" and same.status
            statuses.append(same.status)
            raise

    monkeypatch.setattr(AsyncClient, "_opened", noted)
    cfg = mirror(key=key, cache=cache)
    cfg.wait_ready()
    Watch(cfg).live()
    assert (cfg.health.source, cfg.agent("a").version) == ("server", 1)
    assert statuses == [304]
