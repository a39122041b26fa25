"""The fakes behave as the real ones."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentcfg import AgentCfg, Change, NoSuchAgent, PromptError, errors
from agentcfg.testing import FakeAgentCfg, FakeAsyncAgentCfg, Fields


def test_a_fake_is_ready_and_typed() -> None:
    cfg: AgentCfg = FakeAgentCfg({"support": {"model": "gpt-5.5", "persona_prompt": "Hi"}})
    with cfg:
        agent = cfg.agent("support")
        assert (agent.version, agent.label, agent.model, agent.prompt()) == (1, "production", "gpt-5.5", "Hi")
        assert cfg.health.is_live and cfg.health.source == "server"
        with pytest.raises(NoSuchAgent):
            cfg.agent("sales")
        with pytest.raises(PromptError):
            agent.prompt(name="x")
        with pytest.raises(errors.InputError, match="a fake has no server"):
            _ = cfg.client
        assert str(cfg.openai("support").base_url).startswith("http://agentcfg.invalid/api/agents/model-calls/openai/")


def test_a_release_is_one_step() -> None:
    cfg = FakeAgentCfg({"a": {}, "b": {}}, label="staging")
    steps: list[Change] = []
    cfg.on_change(steps.append)
    cfg.release({"a": {"model": "x"}, "b": None, "c": {}})
    assert [(step.changed, step.removed, step.added) for step in steps] == [(("a",), ("b",), ("c",))]
    assert {agent.agent_id: agent.version for agent in cfg.snapshot.values()} == {"a": 2, "c": 1}


def test_versions_are_those_of_a_server() -> None:
    cfg = FakeAgentCfg({"a": {"model": "x"}})
    steps: list[Change] = []
    cfg.on_change(steps.append)
    cfg.release({"a": {"model": "x"}})
    assert cfg.agent("a").version == 1 and steps == []
    cfg.release({"a": None})
    cfg.release({"a": {"model": "x"}})
    assert cfg.agent("a").version == 1
    cfg.release({"a": {"model": "x", "definition": None}})
    assert cfg.agent("a").version == 1 and len(steps) == 2
    cfg.release({"a": None})
    cfg.release({"a": {"model": "y"}})
    assert cfg.agent("a").version == 2
    fields: Fields = {"parameters": {"warmth": 1}}
    cfg.release({"a": fields})
    fields["parameters"]["warmth"] = 2
    assert cfg.agent("a").parameters == {"warmth": 1}
    cfg.close()
    cfg.release({"a": {"model": "z"}})
    assert cfg.agent("a").version == 3 and not cfg.health.is_live


def test_what_a_server_refuses_is_refused() -> None:
    wrong: Any = {"persona_promt": "x"}
    with pytest.raises(errors.InputError, match="persona_promt of a is no field"):
        FakeAgentCfg({"a": wrong})
    for agent_id in ("", "BAD", "a b", "a" * 51):
        with pytest.raises(errors.InputError, match="agent_id must be"):
            FakeAgentCfg({agent_id: {}})
    for label in ("", "BAD", "12", "a" * 37):
        with pytest.raises(errors.InputError, match="label must be"):
            FakeAsyncAgentCfg(label=label)
    cfg = FakeAgentCfg({"a": {}})
    with pytest.raises(errors.InputError):
        cfg.release({"a": {"model": "x"}, "b": wrong})
    assert cfg.agent("a").model is None, "all or nothing"


def test_an_outage_shows_in_health() -> None:
    cfg = FakeAgentCfg({"a": {}})
    cfg.disconnect()
    assert not cfg.health.is_live and isinstance(cfg.health.error, errors.ExchangeError)
    assert cfg.agent("a").version == 1
    cfg.reconnect()
    assert cfg.health.is_live and cfg.health.error is None


def test_reports_are_recorded() -> None:
    cfg = FakeAgentCfg({"a": {}})
    with cfg.report_status("a", working="Task", task_id="T-1"):
        pass
    assert [entry["report"]["status"] for entry in cfg.reports] == ["working", "idle"]
    assert cfg.reports[0] == {
        "agent_id": "a",
        "report": {"status": "working", "current_task_id": "T-1", "current_task_title": "Task"},
    }


def test_the_asynchronous_fake() -> None:
    async def run() -> None:
        async with FakeAsyncAgentCfg({"a": {"model": "x"}}) as cfg:
            assert cfg.agent("a").model == "x"
            async with cfg.report_status("a", working="Task"):
                assert cfg.reports[0]["report"]["status"] == "working"
            with pytest.raises(errors.InputError, match="a fake has no server"):
                _ = cfg.client

    asyncio.run(run())


def test_listeners_may_subscribe_and_unsubscribe_while_they_are_called() -> None:
    cfg = FakeAgentCfg({"a": {}})
    called: list[str] = []

    def first(_: Change) -> None:
        called.append("first")
        for stop in stops:
            stop()
        cfg.on_change(lambda _: called.append("new"))

    stops = [cfg.on_change(first), cfg.on_change(lambda _: called.append("last"))]
    cfg.release({"a": {"role": "x"}})
    assert called == ["first"]
    cfg.release({"a": {"role": "y"}})
    assert called == ["first", "new"]
