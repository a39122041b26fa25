"""What the follower asks for, and when. A script answers, because a server cannot be made to behave like this."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentcfg import NO_RETRIES, AsyncClient, errors
from agentcfg._cache import CacheFile
from agentcfg._follower import Follower
from agentcfg._holder import Holder
from agentcfg.calls import Key
from agentcfg.snapshot import Position
from fake_clock import FakeClock

Answer = httpx.Response | type[httpx.TransportError]


class Script:
    """Answers one request after another, and ends the follower at the last."""

    def __init__(
        self, *answers: Answer, workspace: str | None = "w", cache: CacheFile | None = None, key: Key = "k"
    ) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.clock = FakeClock()
        self.holder = Holder("production", self.clock)
        self.steps: list[int | None] = []
        self.holder.on_change(lambda change: self.steps.append(version(change.after)))
        self.workspace = workspace
        self.was_live = False
        self.cache = cache
        self.key = key

    def run(self) -> Script:
        async def follow() -> None:
            transport = httpx.MockTransport(self.answer)
            async with AsyncClient(
                "http://agents.example.com",
                self.key,
                workspace=self.workspace,
                retry=NO_RETRIES,
                clock=self.clock,
                transport=transport,
            ) as client:
                await Follower(client, self.holder, self.cache, 60.0, self.clock).run()

        with pytest.raises(asyncio.CancelledError):
            asyncio.run(follow())
        return self

    def answer(self, request: httpx.Request) -> httpx.Response:
        parameters = request.url.params
        path = request.url.path.rsplit("/", 1)[1]
        stream = "+" if request.headers["accept"] == "text/event-stream" else ""
        # The events of a stream have what they release if it follows the label.
        assert parameters.get("label") == (None if path in ("changes", "whoami") and not stream else "production")
        self.asked.append(f"{path}{stream} {parameters.get('after', '')}".strip())
        if not self.answers:
            self.was_live = self.holder.health().is_live
            raise asyncio.CancelledError
        given = self.answers.pop(0)
        if isinstance(given, httpx.Response):
            return given
        raise given("from the test", request=request)


def version(snapshot: Any) -> int | None:
    return snapshot["a"].version if "a" in snapshot else None


def row(agent_id: str, number: int, updated_at: str = "t") -> dict[str, Any]:
    config: dict[str, Any] = {"display_name": agent_id, "agent_type": "ai", "capabilities": [], "parameters": {}}
    return {"agent_id": agent_id, "label": "production", "version": number, "updated_at": updated_at, "config": config}


def listed(cursor: str, *rows: dict[str, Any]) -> httpx.Response:
    tag = "".join(str(row["version"]) for row in rows)
    return httpx.Response(200, json=rows, headers={"etag": f'"{tag}"', "change-cursor": cursor})


def released(number: int, cursor: str, updated_at: str = "t") -> httpx.Response:
    return listed(cursor, row("a", number, updated_at))


def unchanged(cursor: str) -> httpx.Response:
    return httpx.Response(304, headers={"change-cursor": cursor})


def refused(status: int, **headers: str) -> httpx.Response:
    own = {k.replace("_", "-"): v for k, v in headers.items()}
    return httpx.Response(status, json={"error": "no"}, headers={"x-request-id": "r", **own})


def stream(*events: str) -> httpx.Response:
    return httpx.Response(200, text="retry: 1500\n\n" + "".join(events), headers={"content-type": "text/event-stream"})


def bookmark(cursor: str) -> str:
    return f"event: bookmark\nid: {cursor}\ndata: {{}}\n\n"


def change(cursor: str, label: str = "production", **members: Any) -> str:
    changes = {f"agents/a/labels/{label}": {"from": 1, "to": 2}}
    event = {"cursor": cursor, "type": "label.set", "target": {"type": "agent", "id": "a"}, "changes": changes}
    return f"event: change\nid: {cursor}\ndata: {json.dumps({**event, **members})}\n\n"


def release(cursor: str, *rows: dict[str, Any]) -> str:
    return change(cursor, released=rows)


END = 'event: end\ndata: {"error": "the server stops"}\n\n'
GONE = 'event: gone\ndata: {"error": "of another epoch"}\n\n'


def test_a_broken_stream_goes_on_from_its_cursor_with_growing_delays() -> None:
    script = Script(
        released(1, "e-c1"),
        stream(bookmark("e-c1"), bookmark("e-c3")),
        httpx.ConnectError,
        httpx.ConnectError,
        refused(503, retry_after="4"),
        stream(bookmark("e-c3"), bookmark("e-c5")),
    ).run()
    assert script.asked == ["released", "changes+ e-c1", *["changes+ e-c3"] * 4, "changes+ e-c5"]
    # Half of each delay is jitter; what works starts the delays again.
    assert script.clock.waits == [0.3, 0.6, 1.2, 6.4, 0.3]


def test_delays_have_a_bound() -> None:
    script = Script(released(1, "e-c1"), *[httpx.ConnectError] * 9).run()
    assert script.clock.waits == [0.3, 0.6, 1.2, 2.4, 4.8, 9.6, 15.0, 15.0, 15.0]


def test_an_orderly_end_waits_as_long_as_the_server_asks() -> None:
    script = Script(released(1, "e-c1"), stream(bookmark("e-c2"), END)).run()
    assert (script.asked, script.clock.waits) == (["released", "changes+ e-c1", "changes+ e-c2"], [1.5])
    assert script.holder.health().error is None and not script.holder.health().is_live


@pytest.mark.parametrize("gone", [refused(410), stream(bookmark("e-c1"), GONE)])
def test_a_position_that_is_gone_leads_back_to_the_list(gone: httpx.Response) -> None:
    script = Script(released(2, "e-c9"), gone, released(1, "f-c4")).run()
    assert script.asked == ["released", "changes+ e-c9", "released", "changes+ f-c4"]
    assert script.steps == [2, 1] and script.clock.waits == [0.3]


def test_a_label_that_comes_back_to_its_version_is_no_step() -> None:
    events = stream(change("e-c2"), change("e-c3"))
    script = Script(released(1, "e-c1"), events, released(1, "e-c3", "later")).run()
    assert script.steps == [1] and script.holder.snapshot()["a"].updated_at == "later"


def test_a_restored_store_with_the_content_of_before_is_no_step() -> None:
    script = Script(released(1, "e-c9"), stream(GONE), released(1, "f-c4"), stream(GONE)).run()
    assert script.steps == [1]


def test_events_that_come_together_cause_one_read() -> None:
    events = stream(change("e-c2"), change("e-c3", "staging"), change("e-c4"), bookmark("e-c4"))
    script = Script(released(1, "e-c1"), events, released(2, "e-c6")).run()
    assert script.asked == ["released", "changes+ e-c1", "released", "changes+ e-c4"]
    assert script.steps == [1, 2]


def test_what_the_list_has_already_causes_no_read() -> None:
    script = Script(released(1, "e-c6"), stream(change("e-c5"), change("e-c6"), change("e-c7", "staging"))).run()
    assert script.asked == ["released", "changes+ e-c6", "changes+ e-c7"]


def test_a_server_that_lags_is_asked_again() -> None:
    script = Script(
        released(2, "e-c5"),
        stream(change("e-c6"), change("e-c7")),
        unchanged("e-c6"),  # as it was before the last event
        stream(change("e-c7")),
        released(2, "e-c6"),
        stream(change("e-c6"), change("e-c7")),
        released(1, "e-c4"),  # as it was before the first answer
        stream(change("e-c6"), change("e-c7")),
        released(3, "e-c7"),
    ).run()
    assert script.steps == [2, 3]
    assert script.asked[1::2] == [*["changes+ e-c5"] * 4, "changes+ e-c7"]


def test_a_release_whose_event_has_its_rows_costs_no_request() -> None:
    script = Script(listed("e-c1", row("b", 1), row("a", 1)))

    async def pieces() -> AsyncIterator[bytes]:
        first = script.holder.snapshot()
        for number in range(2, 6):
            yield release(f"e-c{number}", row("a", number)).encode()
            script.clock.time += 0.01
        assert script.holder.snapshot()["b"] is first["b"]
        health = script.holder.health()
        assert health.is_live and health.source == "server" and health.age is not None
        assert health.age.total_seconds() == pytest.approx(0.01)

    script.answers.append(httpx.Response(200, content=pieces()))
    script.run()
    assert script.asked == ["released", "changes+ e-c1", "changes+ e-c5"]
    assert script.steps == [1, 2, 3, 4, 5] and list(script.holder.snapshot()) == ["b", "a"]
    assert script.clock.waits == [0.3], "only before the next stream"
    assert script.holder.position == Position.of("e-c5")
    # The tag is that of no list that was read.
    assert script.holder.etag is None


def test_releases_that_come_together_are_one_step() -> None:
    events = stream(
        release("e-c2", row("a", 2), row("b", 2)),
        change("e-c3", "staging"),
        release("e-c4", row("b", 3)),
        release("e-c5", row("c", 4)),
        bookmark("e-c6"),
    )
    script = Script(listed("e-c1", row("a", 1), row("b", 1), row("c", 1)), events).run()
    assert script.asked == ["released", "changes+ e-c1", "changes+ e-c6"]
    assert script.steps == [1, 2]
    assert [agent.version for agent in script.holder.snapshot().values()] == [2, 3, 4]
    assert script.holder.position == Position.of("e-c5")


@pytest.mark.parametrize(
    "events",
    [
        (change("e-c2"),),
        (release("e-c2", row("new", 1)),),
        (release("e-c2", row("a", 2), row("new", 1)),),
        (release("f-c2", row("a", 2)),),
        (release("e-c2", row("a", 2)), change("e-c3")),
        (change("e-c2"), release("e-c3", row("a", 2))),
        (release("e-c2", row("new", 1)), release("e-c3", row("a", 2))),
    ],
)
def test_events_that_do_not_have_all_that_is_released_cause_a_read(events: tuple[str, ...]) -> None:
    after, now = stream(*events), listed("e-c4", row("a", 3), row("new", 1))
    # The next release is one of what was read.
    following = stream(release("e-c4", row("a", 3)), release("e-c5", row("new", 2)))
    script = Script(released(1, "e-c1"), after, now, following).run()
    last = json.loads(events[-1].split("data: ")[1])["cursor"]
    assert script.asked == ["released", "changes+ e-c1", "released", f"changes+ {last}", "changes+ e-c5"]
    assert [agent.version for agent in script.holder.snapshot().values()] == [3, 2]
    assert script.steps == [1, 3, 3]


def test_a_release_is_read_if_it_comes_after_a_read_that_failed() -> None:
    events = [change("e-c2"), release("e-c3", row("a", 3))]
    script = Script(released(1, "e-c1"), stream(events[0]), refused(500), stream(*events), released(3, "e-c3")).run()
    assert script.asked == ["released", *["changes+ e-c1", "released"] * 2, "changes+ e-c3"]
    assert script.steps == [1, 3]


def test_a_release_is_in_the_file_and_a_start_takes_it_from_there(tmp_path: Path) -> None:
    cache = CacheFile(tmp_path / "agents.json", None, "production")
    events = stream(release("e-c2", row("a", 2, "later")))
    Script(listed("e-c1", row("b", 1), row("a", 1)), events, cache=cache).run()
    saved = cache.load()
    assert saved is not None and (saved.cursor, saved.tag) == ("e-c2", "")
    assert saved.agents == [row("b", 1), row("a", 2, "later")]
    script = Script(refused(503), listed("e-c2", row("b", 1), row("a", 2, "later")), cache=cache)
    script.answers.append(stream(release("e-c3", row("a", 3))))
    assert script.run().steps == [2, 3]
    saved = cache.load()
    assert saved is not None and (saved.cursor, [row["version"] for row in saved.agents]) == ("e-c3", [1, 3])


def test_a_read_that_fails_loses_no_event() -> None:
    script = Script(
        released(1, "e-c1"), stream(change("e-c2")), refused(500), stream(change("e-c2")), released(2, "e-c2")
    )
    assert script.run().steps == [1, 2]
    assert script.asked == ["released", "changes+ e-c1", "released", "changes+ e-c1", "released", "changes+ e-c2"]


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_is_asked_about_rarely_and_from_the_list_on(status: int) -> None:
    script = Script(released(1, "e-c1"), refused(status), refused(status), released(1, "e-c8")).run()
    assert script.asked == ["released", "changes+ e-c1", "released", "released", "changes+ e-c8"]
    assert script.clock.waits == [45.0, 45.0]


def test_long_polls_replace_a_stream_that_is_not_allowed() -> None:
    page = httpx.Response(200, json=[json.loads(change("e-c2").split("data: ")[1])], headers={"change-cursor": "e-c3"})
    script = Script(released(1, "e-c1"), refused(429), page, released(2, "e-c3")).run()
    assert script.asked == ["released", "changes+ e-c1", "changes e-c1", "released", "changes e-c3"]
    assert script.steps == [1, 2] and script.was_live
    assert not script.holder.health().is_live, "the end of the follower is not live"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (httpx.Response(200, json=[]), "no Change-Cursor"),
        (httpx.Response(200, json={"a": 1}), "no JSON array"),
        (
            httpx.Response(200, json=[{"agent_id": "a"}], headers={"change-cursor": "e-c1"}),
            "not what agentcfg promises",
        ),
        (httpx.Response(200, text="<html>", headers={"content-type": "text/html"}), "text/html"),
        (refused(404), "no (status 404, request r)"),
    ],
)
def test_an_answer_of_something_else_ends_the_wait(answer: httpx.Response, reason: str) -> None:
    script = Script(answer).run()
    with pytest.raises(errors.AgentCfgError) as failure:
        script.holder.is_ready()
    assert reason in str(failure.value)


@pytest.mark.parametrize(
    "event",
    [
        *[f"event: change\nid: e-c2\ndata: {data}\n\n" for data in ("{", "[]", "{}", '{"cursor": 1}')],
        change("e-c2", released=1),
        change("e-c2", released=[{"agent_id": "a"}]),
    ],
)
def test_an_event_that_cannot_be_read_leads_to_another_connection(event: str) -> None:
    script = Script(released(1, "e-c1"), stream(event)).run()
    assert script.asked == ["released", "changes+ e-c1", "changes+ e-c1"]
    assert isinstance(script.holder.health().error, errors.AnswerError)


def test_the_workspace_is_asked_for_once() -> None:
    who = httpx.Response(200, json={"type": "api_key", "id": "k", "expires_at": None, "workspaces": [{"id": "w"}]})
    script = Script(who, released(1, "e-c1"), httpx.ReadError, workspace=None).run()
    assert script.asked == ["whoami", "released", "changes+ e-c1", "changes e-c1"]


def test_the_age_is_the_time_since_the_last_word_of_the_server() -> None:
    script = Script(released(1, "e-c1"), httpx.ReadError, refused(503, retry_after="60")).run()
    health = script.holder.health()
    assert health.age is not None and health.age.total_seconds() == pytest.approx(0.3 + 60.6)
    assert isinstance(health.error, errors.Unavailable) and health.source == "server"


def test_a_delay_that_is_asked_for_has_a_bound() -> None:
    script = Script(released(1, "e-c1"), refused(503, retry_after="86400"), refused(503, retry_after="9" * 400)).run()
    assert script.clock.waits == [300.3, 300.6]


def test_a_listener_that_asks_for_the_result_of_a_cancelled_task_stops_nothing() -> None:
    script = Script(released(1, "e-c1"), stream(change("e-c2")), released(2, "e-c2"))

    def fail(_: object) -> None:
        raise asyncio.CancelledError

    script.holder.on_change(fail)
    assert script.run().steps == [1, 2]
    assert script.asked == ["released", "changes+ e-c1", "released", "changes+ e-c2"]
