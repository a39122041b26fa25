"""What the follower asks for, and when. A script answers, because a server cannot be made to behave like this."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from agentcfg import NO_RETRIES, AsyncClient, errors
from agentcfg._cache import CacheFile
from agentcfg._follower import Follower
from agentcfg._holder import Holder
from agentcfg.calls import Key
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
        detail = parameters.get("after") or parameters.get("agent_id") or ""
        self.asked.append(f"{path}{stream} {detail}".strip())
        if not self.answers:
            self.was_live = self.holder.health().is_live
            raise asyncio.CancelledError
        given = self.answers.pop(0)
        if isinstance(given, httpx.Response):
            return given
        raise given("from the test", request=request)


def version(snapshot: Any) -> int | None:
    return snapshot["a"].version if "a" in snapshot else None


def released(number: int | None, cursor: str, updated_at: str = "t") -> httpx.Response:
    config: dict[str, Any] = {"display_name": "A", "agent_type": "ai", "capabilities": [], "parameters": {}}
    row = {"agent_id": "a", "label": "production", "version": number, "updated_at": updated_at, "config": config}
    headers = {"etag": f'"{number}"', "change-cursor": cursor}
    return httpx.Response(200, json=[] if number is None else [row], headers=headers)


def unchanged(cursor: str) -> httpx.Response:
    return httpx.Response(304, headers={"change-cursor": cursor})


def refused(status: int, **headers: str) -> httpx.Response:
    own = {k.replace("_", "-"): v for k, v in headers.items()}
    return httpx.Response(status, json={"error": "no"}, headers={"x-request-id": "r", **own})


def stream(*events: str) -> httpx.Response:
    return httpx.Response(200, text="retry: 1500\n\n" + "".join(events), headers={"content-type": "text/event-stream"})


def bookmark(cursor: str) -> str:
    return f"event: bookmark\nid: {cursor}\ndata: {{}}\n\n"


def change(cursor: str, label: str = "production") -> str:
    changes = {f"agents/a/labels/{label}": {"from": 1, "to": 2}}
    event = {"cursor": cursor, "type": "label.set", "target": {"type": "agent", "id": "a"}, "changes": changes}
    return f"event: change\nid: {cursor}\ndata: {json.dumps(event)}\n\n"


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
        released(2, "e-c6"),  # the one agent too
        stream(change("e-c6"), change("e-c7")),
        released(1, "e-c4"),  # as it was before the first answer
        stream(change("e-c6"), change("e-c7")),
        released(3, "e-c7"),
    ).run()
    assert script.steps == [2, 3]
    assert script.asked[1::2] == [*["changes+ e-c5"] * 4, "changes+ e-c7"]


def test_an_agent_that_alone_has_moved_is_read_alone() -> None:
    config: dict[str, Any] = {"display_name": "B", "agent_type": "ai", "capabilities": [], "parameters": {}}
    other = {"agent_id": "b", "label": "production", "version": 1, "updated_at": "t", "config": config}

    def both(number: int, cursor: str) -> httpx.Response:
        one = released(number, cursor)
        return httpx.Response(200, json=[other, *one.json()], headers=one.headers)

    script = Script(both(1, "e-c1"), stream(change("e-c2")), released(2, "e-c2"), stream(change("e-c4"))).run()
    assert script.asked == ["released", "changes+ e-c1", "released a", "changes+ e-c2", "released a"]
    assert script.steps == [1, 2] and list(script.holder.snapshot()) == ["b", "a"]
    # The tag is that of no list that was read.
    assert script.holder.etag is None
    # Something else has changed when it is read, and then the label of this agent too, so that all is read.
    answers = (released(2, "e-c3"), stream(change("e-c5")), released(3, "e-c6"), both(3, "e-c6"))
    script = Script(both(1, "e-c1"), stream(change("e-c2")), *answers).run()
    asked = ["changes+ e-c1", "released a", "changes+ e-c2", "released a", "released", "changes+ e-c5"]
    assert script.asked == ["released", *asked]
    assert script.steps == [1, 2, 3] and script.holder.etag == '"3"'
    # The store was restored, and has another version of this number.
    script = Script(both(1, "e-c1"), stream(change("e-c2")), released(2, "f-c2"), both(2, "f-c2")).run()
    assert script.asked == ["released", "changes+ e-c1", "released a", "released", "changes+ e-c2"]


def test_a_read_that_fails_loses_no_event() -> None:
    script = Script(
        released(1, "e-c1"), stream(change("e-c2")), refused(500), stream(change("e-c2")), released(2, "e-c2")
    )
    assert script.run().steps == [1, 2]
    assert script.asked == ["released", "changes+ e-c1", "released a", "changes+ e-c1", "released a", "changes+ e-c2"]


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


@pytest.mark.parametrize("data", ["{", "[]", "{}", '{"cursor": 1}'])
def test_an_event_that_cannot_be_read_leads_to_another_connection(data: str) -> None:
    script = Script(released(1, "e-c1"), stream(f"event: change\nid: e-c2\ndata: {data}\n\n")).run()
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
    assert script.asked == ["released", "changes+ e-c1", "released a", "changes+ e-c2"]
