"""The fakes behave as the real ones."""

from __future__ import annotations

import asyncio

import pytest

from agentcfg import AgentCfg, Change, NoSuchAgent, PromptError, errors
from agentcfg.testing import FakeAgentCfg, FakeAsyncAgentCfg


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
