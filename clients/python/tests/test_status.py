"""Reports of status against the real server."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from agentcfg import AgentCfg, AsyncAgentCfg, AsyncClient, Client, types
from agentcfg._status import AsyncStatusReports, Line, StatusReports, working
from agentcfg.testing import FakeAgentCfg, FakeAsyncAgentCfg
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


@pytest.mark.parametrize("is_fake", [False, True])
def test_work_that_overlaps_leaves_what_still_runs(studio: Studio, is_fake: bool) -> None:
    studio.agent("a")

    def shown(cfg: AgentCfg) -> str | None:
        if not isinstance(cfg, FakeAgentCfg):
            return status(studio)["current_task_title"]
        report = cfg.reports[-1]["report"]
        return report.get("current_task_title")

    with FakeAgentCfg({"a": {}}) if is_fake else AgentCfg(studio.server.url, studio.key("write")) as cfg:
        outer, other = cfg.report_status("a", working="Outer"), cfg.report_status("a", working="Other")
        with outer:
            with cfg.report_status("a", working="Inner"):
                assert shown(cfg) == "Inner"
            assert shown(cfg) == "Outer"
            other.__enter__()
            assert shown(cfg) == "Other"
        assert shown(cfg) == "Other"
        other.__exit__(None, None, None)
        assert shown(cfg) is None

    async def run() -> None:
        fake = FakeAsyncAgentCfg({"a": {}})
        real = AsyncAgentCfg(studio.server.url, studio.key("write"))

        def title() -> str | None:
            return fake.reports[-1]["report"].get("current_task_title") if is_fake else shown_by_server()

        def shown_by_server() -> str | None:
            return status(studio)["current_task_title"]

        async with fake if is_fake else real as cfg:
            async with cfg.report_status("a", working="Outer"):
                async with cfg.report_status("a", working="Inner"):
                    assert title() == "Inner"
                assert title() == "Outer"
            assert title() is None

    asyncio.run(run())


class Slow:
    """Sends a report when it is allowed to."""

    def __init__(self) -> None:
        self.sent: list[types.StatusReport] = []
        self.begun = threading.Semaphore(0)
        self.allowed = threading.Semaphore(0)

    def report_agent_status(self, agent_id: str, body: types.StatusReport) -> None:
        self.begun.release()
        assert self.allowed.acquire(timeout=SECONDS)
        self.sent.append(body)


def test_reports_that_wait_for_each_other_are_sent_as_one() -> None:
    client, line = Slow(), Line()
    blocks = [StatusReports(client, "a", working(f"Task {number}", "T"), SECONDS, line) for number in range(5)]
    ended = threading.Event()

    def work(block: StatusReports) -> None:
        with block:
            assert ended.wait(SECONDS)

    threads = [threading.Thread(target=work, args=(block,)) for block in blocks]
    threads[0].start()
    assert client.begun.acquire(timeout=SECONDS)
    for thread in threads[1:]:
        thread.start()
    while len(line._reports) < 5:
        time.sleep(0.001)
    client.allowed.release(2)
    assert client.begun.acquire(timeout=SECONDS)
    client.allowed.release(10)
    ended.set()
    for thread in threads:
        thread.join(SECONDS)
    titles = [report.get("current_task_title") for report in client.sent]
    assert titles[0] == "Task 0" and titles[1] != "Task 0" and titles[-1] is None
    assert len(titles) <= 7  # the first one, all others at once, and at most one for each end


def test_any_failure_of_a_report_leaves_the_block_alone(studio: Studio, caplog: pytest.LogCaptureFixture) -> None:
    def key() -> str:
        raise RuntimeError("of the key")

    cfg = AgentCfg(studio.server.url, studio.key("write"))
    with cfg.report_status("a", working="Close"):
        cfg.close()
    assert "was not reported: the client is closed" in caplog.text
    with Client(studio.server.url, key) as client, StatusReports(client, "a", working("Work", None), 0.01):
        pass
    assert "was not reported: of the key" in caplog.text

    async def run() -> None:
        client = AsyncClient(studio.server.url, key)
        async with client, AsyncStatusReports(client, "a", working("Await", None), 0.01):
            pass

    caplog.clear()
    asyncio.run(run())
    assert "was not reported: of the key" in caplog.text
