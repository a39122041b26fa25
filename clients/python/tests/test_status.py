"""Reports of status against the real server."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import pytest

from agentcfg import NO_RETRIES, AgentCfg, AsyncAgentCfg, AsyncClient, Client, _status, types
from agentcfg._status import AsyncLine, AsyncStatusReports, Line, StatusReports, working
from agentcfg.testing import FakeAgentCfg, FakeAsyncAgentCfg
from conftest import SECONDS, Studio
from fake_clock import FakeClock


def status(studio: Studio) -> types.AgentStatus:
    return studio.owner.list_agent_status()[0]


def shown(studio: Studio, title: str | None) -> types.AgentStatus:
    """Wait until the server shows this task, or none."""
    deadline = time.monotonic() + SECONDS
    while (entry := status(studio))["current_task_title"] != title:
        assert time.monotonic() < deadline, entry
    return entry


async def shown_meanwhile(studio: Studio, title: str | None) -> None:
    await asyncio.to_thread(shown, studio, title)


def test_a_block_is_work(studio: Studio) -> None:
    studio.agent("a")
    with AgentCfg(studio.server.url, studio.key("write")) as cfg:
        with cfg.report_status("a", working="Answer a mail", task_id="T-7"):
            entry = shown(studio, "Answer a mail")
            assert (entry["status"], entry["current_task_id"]) == ("working", "T-7")
        assert status(studio)["status"] == "idle"
        with pytest.raises(RuntimeError, match="of the app"), cfg.report_status("a", working="Fail"):
            shown(studio, "Fail")
            raise RuntimeError("of the app")
        assert status(studio)["status"] == "idle"

    async def run() -> None:
        async with AsyncAgentCfg(studio.server.url, studio.key("write")) as cfg:
            async with cfg.report_status("a", working="Await"):
                await shown_meanwhile(studio, "Await")
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

    def check(cfg: AgentCfg | AsyncAgentCfg, title: str | None) -> None:
        if isinstance(cfg, (FakeAgentCfg, FakeAsyncAgentCfg)):
            assert cfg.reports[-1]["report"].get("current_task_title") == title
        else:
            shown(studio, title)

    with FakeAgentCfg({"a": {}}) if is_fake else AgentCfg(studio.server.url, studio.key("write")) as cfg:
        outer, other = cfg.report_status("a", working="Outer"), cfg.report_status("a", working="Other")
        with outer:
            with cfg.report_status("a", working="Inner"):
                check(cfg, "Inner")
            check(cfg, "Outer")
            other.__enter__()
            check(cfg, "Other")
        check(cfg, "Other")
        other.__exit__(None, None, None)
        check(cfg, None)

    async def run() -> None:
        fake = FakeAsyncAgentCfg({"a": {}})
        real = AsyncAgentCfg(studio.server.url, studio.key("write"))
        async with fake if is_fake else real as cfg:
            async with cfg.report_status("a", working="Outer"):
                async with cfg.report_status("a", working="Inner"):
                    await asyncio.to_thread(check, cfg, "Inner")
                await asyncio.to_thread(check, cfg, "Outer")
            check(cfg, None)

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
    for block in blocks:
        block.__enter__()
        if block is blocks[0]:
            assert client.begun.acquire(timeout=SECONDS)
    client.allowed.release(2)
    assert client.begun.acquire(timeout=SECONDS)
    client.allowed.release(10)
    for block in blocks:
        block.__exit__(None, None, None)
    titles = [report.get("current_task_title") for report in client.sent]
    # All that came while the first one was sent are one report.
    assert titles[:2] == ["Task 0", "Task 4"] and titles[-1] is None
    assert len(titles) <= 7


def test_a_server_that_hangs_holds_no_work_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_status, "PATIENCE", 0.01)
    client = Slow()
    # It would wait for ever for a report that it waits for.
    for number in range(20):
        with StatusReports(client, "a", working(f"Task {number}", "T"), SECONDS):
            pass
    assert client.sent == []
    client.allowed.release(100)

    class Hanging:
        async def report_agent_status(self, agent_id: str, body: types.StatusReport) -> None:
            await asyncio.Event().wait()

    async def run() -> None:
        line = AsyncLine()
        for number in range(20):
            async with AsyncStatusReports(Hanging(), "a", working(f"Task {number}", "T"), SECONDS, line):
                pass

    asyncio.run(run())


def test_a_report_is_sent_once(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    cfg = AgentCfg(url, "svc_test_x", workspace="w", clock=FakeClock())
    with cfg.report_status("a", working="Work"):
        pass
    cfg.close()
    assert "was not reported: no connection could be made" in caplog.text
    assert isinstance(cfg._reporter, Client) and cfg._reporter.retry == NO_RETRIES

    async def run() -> None:
        cfg = AsyncAgentCfg(url, "svc_test_x", workspace="w")
        async with cfg.report_status("a", working="Work"):
            pass
        await cfg.close()
        assert cfg._reporter is not None and cfg._reporter.retry == NO_RETRIES

    asyncio.run(run())


def test_any_failure_of_a_report_leaves_the_block_alone(studio: Studio, caplog: pytest.LogCaptureFixture) -> None:
    def key() -> str:
        raise RuntimeError("of the key")

    cfg = AgentCfg(studio.server.url, studio.key("write"))
    with cfg.report_status("a", working="Close"):
        cfg.close()
    assert "was not reported: the client is closed" in caplog.text
    with (
        Client(studio.server.url, key, retry=NO_RETRIES) as client,
        StatusReports(client, "a", working("Work", None), 0.01),
    ):
        pass
    assert "has failed: RuntimeError('of the key')" in caplog.text

    async def run() -> None:
        client = AsyncClient(studio.server.url, key, retry=NO_RETRIES)
        async with client, AsyncStatusReports(client, "a", working("Await", None), 0.01):
            pass

    caplog.clear()
    asyncio.run(run())
    assert "has failed: RuntimeError('of the key')" in caplog.text


def test_a_close_ends_the_reports_of_work_that_still_runs(studio: Studio, caplog: pytest.LogCaptureFixture) -> None:
    studio.agent("a")
    cfg = AgentCfg(studio.server.url, studio.key("write"))
    with cfg.report_status("a", working="Answer"):
        shown(studio, "Answer")
        [thread] = [thread for thread in threading.enumerate() if thread.name == "agentcfg-status"]
        cfg.close()
        thread.join(SECONDS)
        assert not thread.is_alive()
    assert "the client is closed" in caplog.text

    async def run() -> None:
        cfg = AsyncAgentCfg(studio.server.url, studio.key("write"))
        async with cfg.report_status("a", working="Await"):
            await shown_meanwhile(studio, "Await")
            await cfg.close()
            await asyncio.sleep(0)
            assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())
