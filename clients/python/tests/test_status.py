"""Reports of status against the real server."""

from __future__ import annotations

import asyncio
import threading

import pytest

from agentcfg import AgentCfg, AsyncAgentCfg, AsyncClient, Client, types
from agentcfg._status import AsyncStatusReports, StatusReports, working
from conftest import SECONDS, Studio


def status(studio: Studio) -> types.AgentStatus:
    return studio.owner.list_agent_status()[0]


def test_a_block_is_work(studio: Studio) -> None:
    studio.agent("a")
    with AgentCfg(studio.server.url, studio.key("write")) as cfg:
        with cfg.report_status("a", working="Answer a mail", task_id="T-7"):
            entry = status(studio)
            assert (entry["status"], entry["current_task_id"], entry["current_task_title"]) == (
                "working",
                "T-7",
                "Answer a mail",
            )
        assert status(studio)["status"] == "idle"
        with pytest.raises(RuntimeError, match="of the app"), cfg.report_status("a", working="Fail"):
            assert status(studio)["current_task_title"] == "Fail"
            raise RuntimeError("of the app")
        assert status(studio)["status"] == "idle"

    async def run() -> None:
        async with AsyncAgentCfg(studio.server.url, studio.key("write")) as cfg:
            async with cfg.report_status("a", working="Await"):
                assert status(studio)["current_task_title"] == "Await"
            assert status(studio)["status"] == "idle"

    asyncio.run(run())


def test_a_report_that_fails_is_logged(studio: Studio, caplog: pytest.LogCaptureFixture) -> None:
    studio.agent("a")
    with AgentCfg(studio.server.url, studio.key("read")) as cfg, cfg.report_status("a", working="Read"):
        pass
    assert "the status of a was not reported" in caplog.text and "tasks:update" in caplog.text


class Counted(Client):
    """A client that says when it has reported for the third time."""

    def __init__(self, url: str, key: str) -> None:
        super().__init__(url, key)
        self.reports: list[types.StatusReport] = []
        self.third = threading.Event()

    def report_agent_status(
        self, agent_id: str, body: types.StatusReport, *, workspace_id: str | None = None
    ) -> types.AgentStatus:
        entry = super().report_agent_status(agent_id, body, workspace_id=workspace_id)
        self.reports.append(body)
        if len(self.reports) == 3:
            self.third.set()
        return entry


def test_a_report_is_repeated(studio: Studio) -> None:
    studio.agent("a")
    report = working("Long", None)
    with Counted(studio.server.url, studio.key("write")) as client:
        with StatusReports(client, "a", report, 0.01):
            assert client.third.wait(SECONDS)
        assert client.reports[:3] == [report] * 3 and client.reports[-1] == {"status": "idle"}


class AsyncCounted(AsyncClient):
    """As `Counted`."""

    def __init__(self, url: str, key: str) -> None:
        super().__init__(url, key)
        self.reports: list[types.StatusReport] = []
        self.third = asyncio.Event()

    async def report_agent_status(
        self, agent_id: str, body: types.StatusReport, *, workspace_id: str | None = None
    ) -> types.AgentStatus:
        entry = await super().report_agent_status(agent_id, body, workspace_id=workspace_id)
        self.reports.append(body)
        if len(self.reports) == 3:
            self.third.set()
        return entry


def test_a_report_is_repeated_by_a_task(studio: Studio) -> None:
    studio.agent("a")
    report = working("Long", "T-1")

    async def run() -> None:
        async with AsyncCounted(studio.server.url, studio.key("write")) as client:
            async with AsyncStatusReports(client, "a", report, 0.01):
                await asyncio.wait_for(client.third.wait(), SECONDS)
            assert client.reports[:3] == [report] * 3 and client.reports[-1] == {"status": "idle"}

    asyncio.run(run())
