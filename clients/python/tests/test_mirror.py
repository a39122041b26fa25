"""The mirror of a label against the real server."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentcfg import AgentCfg, AsyncAgentCfg, NoSuchAgent, NotReady, errors
from agentcfg._follower import may_release
from conftest import SECONDS, Server, Studio, Watch
from fake_clock import FakeClock

Make = Callable[..., AgentCfg]


def test_an_agent_is_read_from_memory(studio: Studio, mirror: Make) -> None:
    studio.agent(
        "support",
        model="gpt-5.5",
        persona_prompt="You help with {{product}}.",
        capabilities=["mail"],
        parameters={"formality": 70, "warmth": 0.5},
        definition={"variables": {"product": {}}, "model_settings": {"temperature": 0.2}, "tools": ["search"]},
    )
    cfg = mirror()
    cfg.wait_ready()
    agent = cfg.agent("support")
    assert (agent.version, agent.model, agent.label) == (1, "gpt-5.5", "production")
    assert agent.prompt(product="Boards") == "You help with Boards."
    assert (agent.capabilities, agent.parameters) == (("mail",), {"formality": 70, "warmth": 0.5})
    assert (agent.model_settings, agent.tools, agent.variables) == ({"temperature": 0.2}, ["search"], ("product",))
    agent.definition["tools"].append("changed")
    assert agent.definition["tools"] == ["search"]
    with pytest.raises(
        NoSuchAgent, match="no active agent 'sales' bears the label 'production'; those that do: support"
    ):
        cfg.agent("sales")


def test_a_release_of_many_agents_is_one_step(studio: Studio, mirror: Make) -> None:
    names = [f"agent-{number:02}" for number in range(40)]
    studio.apply(names, model="one")
    studio.owner.promote_agent_labels({"from": "latest", "to": "production"})
    cfg = mirror()
    cfg.wait_ready()
    watch = Watch(cfg)
    watch.live()
    seen: set[frozenset[str | None]] = set()
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            snapshot = cfg.snapshot
            seen.add(frozenset(snapshot[name].model for name in names))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        studio.apply(names, model="two")
        moved = studio.owner.promote_agent_labels({"from": "latest", "to": "production"})
        step = watch.next()
    finally:
        ended.set()
        reader.join()
    assert len(moved) == 40 and len(step.changed) == 40 and not step.added and not step.removed
    assert {agent.version for agent in step.before.values()} == {1}
    assert {agent.version for agent in cfg.snapshot.values()} == {2}
    assert seen <= {frozenset({"one"}), frozenset({"two"})}
    assert watch.steps.empty()


def test_every_way_to_release_is_seen(studio: Studio, mirror: Make) -> None:
    studio.agent("a")
    studio.agent("b", label=None)
    cfg = mirror()
    cfg.wait_ready()
    watch = Watch(cfg)
    watch.live()
    studio.release("b", 1)
    assert watch.next().added == ("b",)
    studio.edit("a", model="x")
    studio.release("a", 2, "staging")
    revision = int(studio.owner.list_audit_log(limit=1)[0]["revision"])
    studio.release("a", 2)
    assert watch.next().changed == ("a",)
    assert cfg.agent("a").model == "x"
    studio.owner.restore_agent_labels({"label": "production", "revision": revision})
    assert watch.next().changed == ("a",)
    assert cfg.agent("a").version == 1
    studio.owner.delete_agent("a")
    assert watch.next().removed == ("a",)
    studio.owner.restore_agent("a")
    assert watch.next().added == ("a",)
    studio.owner.remove_agent_label("b", "production")
    assert watch.next().removed == ("b",)
    studio.owner.apply_agents({"agents": [{"agent_id": "a", "display_name": "A"}], "set": "team"})
    studio.owner.apply_agents({"agents": [], "set": "team", "prune": True})
    assert watch.next().removed == ("a",)
    assert watch.steps.empty()


def test_latest_follows_each_edit(studio: Studio, mirror: Make) -> None:
    studio.agent("a", label=None)
    cfg = mirror(label="latest")
    cfg.wait_ready()
    watch = Watch(cfg)
    watch.live()
    studio.edit("a", model="x")
    assert watch.next().changed == ("a",)
    assert (cfg.agent("a").version, cfg.agent("a").model) == (2, "x")
    studio.agent("b", label=None)
    assert watch.next().added == ("b",)


def test_events_that_release_nothing_cause_no_read() -> None:
    agent = {"type": "agent", "id": "a"}
    workspace = {"type": "workspace", "id": "w"}
    change = {"from": None, "to": 1}

    def released(kind: str, target: object, *paths: str, label: str = "production") -> bool:
        event: Any = {"type": kind, "target": target, "changes": dict.fromkeys(paths, change)}
        return may_release(event, label)

    assert not released("agent.updated", agent, "model", "updated_at")
    assert released("agent.updated", agent, "model", label="latest")
    assert released("agent.deactivated", agent, "is_active")
    assert released("label.set", agent, "agents/a/labels/production")
    assert not released("label.set", agent, "agents/a/labels/staging")
    assert not released("label.set", agent, "agents/a/labels/staging", label="latest")
    assert released("label.promoted", workspace, "agents/a/labels/staging", "agents/b/labels/production")
    assert not released("agents.applied", workspace, "agents/a/model")
    assert released("agents.applied", workspace, "agents/a/is_active")
    assert not released("member.set", {"type": "member", "id": "m"}, "role")
    assert released("agent.of_a_later_release", agent)


def test_a_revoked_key_leaves_the_state_and_shows_in_health(studio: Studio, mirror: Make) -> None:
    studio.agent("a")
    created = studio.owner.create_api_key({"name": "k", "environment": "development", "scope": "read"})
    cfg = mirror(key=created["key"])
    cfg.wait_ready()
    watch = Watch(cfg)
    watch.live()
    studio.owner.revoke_api_key(created["id"])
    health = watch.health(lambda health: health.error is not None)
    assert isinstance(health.error, errors.Unauthorized) and health.error.status == 401
    assert not health.is_live and health.age is not None
    assert cfg.agent("a").version == 1


def test_a_key_can_be_replaced(studio: Studio, mirror: Make) -> None:
    studio.agent("a")
    created = studio.owner.create_api_key({"name": "k", "environment": "development", "scope": "read"})
    keys = [created["key"]]
    # Its clock does not wait for half a minute after a refusal.
    cfg = mirror(key=lambda: keys[-1], clock=FakeClock())
    cfg.wait_ready()
    watch = Watch(cfg)
    watch.live()
    keys.append(studio.owner.rotate_api_key(created["id"])["key"])
    studio.owner.delete_agent("a")
    assert watch.next().removed == ("a",)
    with pytest.raises(errors.InputError, match="key is empty"):
        keys.append("")
        cfg.client.who_am_i()


def test_refusals_end_the_wait_at_once(studio: Studio, mirror: Make) -> None:
    with pytest.raises(errors.Unauthorized):
        mirror(key="svc_test_wrong").wait_ready()
    with pytest.raises(errors.BadRequest, match="label"):
        mirror(label="Not A Label").wait_ready()
    other = studio.server.studio("other").workspace
    with pytest.raises(errors.Forbidden):
        mirror(workspace=other).wait_ready()
    with pytest.raises(errors.InputError, match="the credential opens"):
        mirror(key=studio.server.token("a user without a workspace")).wait_ready()


def test_a_wait_may_have_no_end(studio: Studio, mirror: Make) -> None:
    studio.agent("a")
    cfg = mirror()
    cfg.wait_ready(float("inf"))
    assert cfg.agent("a").version == 1


def test_a_wait_without_a_server_ends(studio: Studio) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    cfg = AgentCfg(url, "svc_test_x")
    try:
        with pytest.raises(NotReady, match="no state yet"):
            cfg.agent("a")
        with pytest.raises(NotReady, match=r"no state within 0\.2 seconds"):
            cfg.wait_ready(0.2)
        assert isinstance(Watch(cfg).health(lambda health: health.error is not None).error, errors.ConnectError)
    finally:
        cfg.close()
    with pytest.raises(NotReady, match="closed"):
        cfg.wait_ready()


def test_polls_replace_streams_beyond_those_of_a_key(studio: Studio, mirror: Make) -> None:
    studio.agent("a")
    key = studio.key()
    crowd = [mirror(key=key, workspace=studio.workspace) for _ in range(12)]
    watches = [Watch(cfg) for cfg in crowd]
    for cfg, watch in zip(crowd, watches, strict=True):
        cfg.wait_ready()
        watch.live()
    studio.edit("a", model="x")
    studio.release("a", 2)
    for cfg, watch in zip(crowd, watches, strict=True):
        while cfg.agent("a").version != 2:
            watch.next()


def test_it_survives_a_dead_server(own_server: Server, tmp_path: Path) -> None:
    studio = own_server.studio()
    studio.agent("a", model="one")
    key = studio.key()
    cache = tmp_path / "agents.json"
    with AgentCfg(own_server.url, key, cache=cache) as cfg:
        watch = Watch(cfg)
        watch.live()
        own_server.kill()
        assert watch.health(lambda health: not health.is_live).source == "server"
        assert cfg.agent("a").model == "one"

        # A second process starts with the file alone.
        with AgentCfg(own_server.url, key, cache=cache) as late:
            health = late.health
            assert (health.source, health.is_live) == ("cache", False)
            assert isinstance(health.error, errors.ConnectError)
            assert health.age is not None and health.age.total_seconds() >= 0
            assert late.agent("a").model == "one"

            own_server.start()
            studio.edit("a", model="two")
            studio.release("a", 2)
            late_watch = Watch(late)
            while late.agent("a").model != "two":
                late_watch.next()
            assert late_watch.live().source == "server"
        while cfg.agent("a").model != "two":
            watch.next()
        watch.live()
        assert cfg.health.error is None
    assert json.loads(cache.read_text())["agents"][0]["config"]["model"] == "two"


def test_a_restored_backup_is_read_again(own_server: Server, tmp_path: Path) -> None:
    studio = own_server.studio()
    studio.agent("a", model="one")
    with AgentCfg(own_server.url, studio.key()) as cfg:
        watch = Watch(cfg)
        watch.live()
        own_server.command("backup", "--data", own_server.data, "--out", tmp_path / "backup")
        studio.edit("a", model="two")
        studio.release("a", 2)
        assert watch.next().after["a"].version == 2
        own_server.kill()
        master_key = own_server.data / "master.key"
        session_key = own_server.data / "session.key"
        own_server.data = tmp_path / "restored"
        own_server.command("restore", "--from", tmp_path / "backup", "--data", own_server.data)
        for file in (master_key, session_key):
            (own_server.data / file.name).write_bytes(file.read_bytes())
            (own_server.data / file.name).chmod(0o600)
        own_server.start()
        assert watch.next().after["a"].version == 1
        assert watch.live().error is None


def test_a_silent_server_counts_as_down(studio: Studio, silent_server: str, tmp_path: Path) -> None:
    studio.agent("a")
    cache = tmp_path / "agents.json"
    key = studio.key()
    with AgentCfg(studio.server.url, key, cache=cache):
        pass
    with AgentCfg(silent_server, key, cache=cache, cache_after=0.05) as cfg:
        assert (cfg.agent("a").version, cfg.health.source) == (1, "cache")


def test_a_refusal_counts_more_than_the_cache(studio: Studio, mirror: Make, tmp_path: Path) -> None:
    studio.agent("a")
    cache = tmp_path / "agents.json"
    created = studio.owner.create_api_key({"name": "k", "environment": "development", "scope": "read"})
    with AgentCfg(studio.server.url, created["key"], cache=cache):
        pass
    studio.owner.revoke_api_key(created["id"])
    cfg = mirror(key=created["key"], cache=cache)
    with pytest.raises(errors.Unauthorized):
        cfg.wait_ready()


def test_the_cache_file_is_private_and_whole(studio: Studio, mirror: Make, tmp_path: Path) -> None:
    studio.agent("a")
    cache = tmp_path / "agents.json"
    Watch(mirror(cache=cache)).live()
    assert cache.stat().st_mode & 0o777 == 0o600
    saved = json.loads(cache.read_text())
    assert (saved["format"], saved["label"], saved["workspace_id"]) == (1, "production", studio.workspace)
    assert [path.name for path in tmp_path.iterdir()] == ["agents.json"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "is no JSON"),
        ("[]", "is no cache file"),
        ('{"format": 1}', "is no cache file"),
        ('{"format": 9}', "another release"),
        ('{"format":1,"workspace_id":"w","label":"staging","tag":"","cursor":"","agents":[]}', "label 'staging'"),
        ('{"format":1,"workspace_id":"w","label":"production","tag":"","cursor":"","agents":[1]}', "not subscriptable"),
    ],
)
def test_a_wrong_cache_file_is_reported_and_replaced(
    studio: Studio, mirror: Make, tmp_path: Path, content: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    studio.agent("a")
    cache = tmp_path / "agents.json"
    cache.write_text(content)
    cfg = mirror(cache=cache)
    cfg.wait_ready()
    assert reason in caplog.text
    Watch(cfg).live()
    assert json.loads(cache.read_text())["agents"][0]["agent_id"] == "a"
    assert cfg.health.cache_error is None


def test_a_cache_file_of_another_workspace_is_not_followed(studio: Studio, mirror: Make, tmp_path: Path) -> None:
    studio.agent("a")
    other = studio.server.studio("other")
    other.agent("b")
    cache = tmp_path / "agents.json"
    Watch(mirror(key=other.key(), cache=cache)).live()
    cfg = mirror(cache=cache)
    cfg.wait_ready()
    assert list(cfg.snapshot) == ["a"]


def test_a_cache_that_cannot_be_written_is_no_failure(studio: Studio, mirror: Make, tmp_path: Path) -> None:
    studio.agent("a")
    cfg = mirror(cache=tmp_path / "no such folder" / "agents.json")
    cfg.wait_ready()
    Watch(cfg).live()
    assert isinstance(cfg.health.cache_error, FileNotFoundError)


def test_a_failing_listener_stops_nothing(studio: Studio, mirror: Make, caplog: pytest.LogCaptureFixture) -> None:
    studio.agent("a")
    cfg = mirror()

    def fail(_: object) -> None:
        raise RuntimeError("of the app")

    cfg.on_change(fail)
    cfg.wait_ready()
    watch = Watch(cfg)
    watch.live()
    studio.owner.delete_agent("a")
    assert watch.next().removed == ("a",)
    assert "of the app" in caplog.text


def test_a_listener_can_be_removed(studio: Studio, mirror: Make) -> None:
    studio.agent("a")
    cfg = mirror()
    cfg.wait_ready()
    steps: list[object] = []
    remove = cfg.on_change(steps.append)
    watch = Watch(cfg)
    watch.live()
    remove()
    remove()
    studio.owner.delete_agent("a")
    watch.next()
    assert steps == []


def test_the_asynchronous_mirror(studio: Studio, tmp_path: Path) -> None:
    studio.agent("a", model="one")
    key = studio.key()

    async def run() -> None:
        steps: asyncio.Queue[object] = asyncio.Queue()
        async with AsyncAgentCfg(studio.server.url, key, cache=tmp_path / "agents.json") as cfg:
            cfg.on_change(steps.put_nowait)
            assert cfg.agent("a").model == "one"
            studio.edit("a", model="two")
            studio.release("a", 2)
            await asyncio.wait_for(steps.get(), SECONDS)
            assert cfg.agent("a").model == "two"
            me = await cfg.client.who_am_i()
            assert me["workspaces"][0]["id"] == studio.workspace
        assert cfg.agent("a").model == "two"
        wrong = AsyncAgentCfg(studio.server.url, "svc_test_wrong")
        with pytest.raises(errors.Unauthorized):
            await wrong.wait_ready()
        await wrong.close()

    asyncio.run(run())


def test_a_silent_server_is_not_waited_for_for_ever(silent_server: str) -> None:
    async def run() -> None:
        cfg = AsyncAgentCfg(silent_server, "svc_test_x")
        with pytest.raises(NotReady, match=r"no state within 0\.05 seconds"):
            await cfg.wait_ready(0.05)
        await cfg.close()

    asyncio.run(run())


def test_a_name_that_is_being_resolved_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, resolved = threading.Event(), threading.Event()

    def resolve(*_: object, **__: object) -> list[object]:
        asked.set()
        resolved.wait(SECONDS)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    cfg = AgentCfg("http://agents.example.com", "svc_test_x", workspace="w")
    try:
        assert asked.wait(SECONDS)
        cfg.close()
        assert not resolved.is_set()
    finally:
        resolved.set()


def test_no_secret_is_shown(studio: Studio, mirror: Make) -> None:
    key = studio.key()
    cfg = mirror(key=key)
    assert key not in repr(cfg) and key not in repr(cfg.client)
