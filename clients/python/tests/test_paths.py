"""What the follower does where something between it and the server spoils the answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentcfg import NO_RETRIES, Client, errors
from agentcfg._cache import CacheFile, Saved
from agentcfg._follower import SILENCE
from test_follower import END, Script, bookmark, change, refused, released, stream


def page(cursor: str, *events: str) -> httpx.Response:
    content = [json.loads(event.split("data: ")[1]) for event in events]
    return httpx.Response(200, json=content, headers={"change-cursor": cursor})


def test_what_a_stream_does_not_bring_is_polled() -> None:
    script = Script(
        released(1, "e-c1"),
        stream(),
        page("e-c3", change("e-c2")),
        released(2, "e-c2"),
        httpx.ReadTimeout,
        page("e-c4"),
        stream(bookmark("e-c4"), bookmark("e-c5")),
    ).run()
    assert script.steps == [1, 2]
    assert script.asked == [
        "released",
        "changes+ e-c1",
        "changes e-c1",
        "released",
        "changes+ e-c3",
        "changes e-c3",
        "changes+ e-c4",
        "changes+ e-c5",
    ]


def test_after_three_streams_without_an_event_polls_replace_them_for_minutes() -> None:
    silent = [answer for _ in range(3) for answer in (stream(), page("e-c1"))]
    # Each poll is answered at once, so that the next one is two seconds later.
    script = Script(
        released(1, "e-c1"), *silent, *[page("e-c2")] * 149, stream(bookmark("e-c3"), END), stream(END)
    ).run()
    assert script.asked[1:7] == ["changes+ e-c1", "changes e-c1"] * 3
    assert script.asked[7:156] == ["changes e-c1", *["changes e-c2"] * 148]
    # One stream with an event is enough to go on with streams.
    assert script.asked[156:] == ["changes+ e-c2", "changes+ e-c3", "changes+ e-c3"]


def test_a_poll_that_fails_leads_to_another_poll_where_no_stream_passes() -> None:
    silent = [answer for _ in range(3) for answer in (stream(), page("e-c1"))]
    script = Script(released(1, "e-c1"), *silent, httpx.ConnectError, page("e-c2")).run()
    assert script.asked[5:] == ["changes+ e-c1", *["changes e-c1"] * 3, "changes e-c2"]


def test_polls_leave_half_of_the_rate_limit() -> None:
    script = Script(released(1, "e-c1"), refused(429))
    for remaining in ("9", "1"):
        reset = str(int(script.clock.now()) + 40)
        limit = {"x-ratelimit-limit": "100", "x-ratelimit-remaining": remaining, "x-ratelimit-reset": reset}
        answer = page("e-c1")
        answer.headers.update(limit)
        script.answers.append(answer)
    script.run()
    # Four of nine requests in 40 seconds; then the rest of the window.
    assert script.clock.waits == [10.0, 30.0]


def test_comments_of_a_proxy_keep_no_stream_live() -> None:
    script = Script(released(1, "e-c1"))

    async def pieces() -> AsyncIterator[bytes]:
        yield (bookmark("e-c1") + bookmark("e-c2")).encode()
        for _ in range(3):
            script.clock.time += 10
            yield b": still here\n"
        yield bookmark("e-c3").encode()

    async def slow() -> AsyncIterator[bytes]:
        data = change("e-c3", "staging").encode()
        for at in range(0, len(data), 40):
            script.clock.time += 40
            yield data[at : at + 40]

    script.answers += [
        httpx.Response(200, content=pieces()),
        page("e-c2"),
        httpx.Response(200, content=slow()),
        page("e-c3"),
    ]
    script.run()
    # A long event that comes slowly is none.
    assert script.asked[1:] == ["changes+ e-c1", "changes e-c2", "changes+ e-c2", "changes e-c3", "changes+ e-c3"]


def test_a_burst_of_events_costs_one_read_at_once_and_then_ten_a_second_at_most() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for revision in range(2, 302):
            yield change(f"e-c{revision}").encode()

    script = Script(released(1, "e-c1"), httpx.Response(200, content=pieces()))
    script.answers += [released(2, "e-c2"), released(200, "e-c200"), released(301, "e-c301")]
    script.run()
    assert script.asked == ["released", "changes+ e-c1", "released", "released", "released", "changes+ e-c301"]
    assert (script.steps, script.clock.waits[:2]) == ([1, 2, 200, 301], [0.1, 0.1])


def test_reads_after_events_leave_half_of_the_rate_limit() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield change("e-c2").encode()
        yield change("e-c3").encode()

    script = Script(released(1, "e-c1"), httpx.Response(200, content=pieces()))
    second = released(2, "e-c2")
    reset = str(int(script.clock.now()) + 40)
    second.headers.update({"x-ratelimit-limit": "100", "x-ratelimit-remaining": "8", "x-ratelimit-reset": reset})
    script.answers += [second, released(3, "e-c3")]
    script.run()
    # Four of eight requests in 40 seconds.
    assert (script.steps, script.clock.waits[0]) == ([1, 2, 3], 10.0)


def test_the_time_of_the_last_confirmation_is_written_to_the_file(cached: Callable[..., Script]) -> None:
    script = cached(httpx.Response(304, headers={"change-cursor": "e-c7"}))
    times: list[float] = []

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(6):
            yield bookmark("e-c7").encode()
            assert script.cache is not None
            saved = script.cache.load()
            assert saved is not None
            times.append(saved.confirmed_at - 1_000_000)
            script.clock.time += 15

    script.answers.append(httpx.Response(200, content=pieces()))
    script.run()
    assert times == [0, 0, 0, 0, 0, 75]


def held(script: Script, cursor: str) -> httpx.Response:
    """A stream of which a proxy passes on the first event alone."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b"retry: 1500\n\n" + bookmark(cursor).encode()
        script.clock.time += SILENCE
        raise httpx.ReadTimeout("from the test")

    return httpx.Response(200, content=pieces())


def test_a_proxy_that_passes_the_first_event_alone_hides_no_release() -> None:
    script = Script(released(1, "e-c1"))
    script.answers += [held(script, "e-c1"), page("e-c2", change("e-c2")), released(2, "e-c2")]
    script.answers += [held(script, "e-c2"), page("e-c2"), held(script, "e-c2"), page("e-c2")]
    seen: list[float] = []
    script.holder.on_change(lambda _: seen.append(script.clock.time))
    script.run()
    assert script.steps == [1, 2] and seen[1] < 30
    assert script.asked[1:] == [
        *["changes+ e-c1", "changes e-c1", "released"],
        *["changes+ e-c2", "changes e-c2"] * 2,
        "changes e-c2",
    ], "after three such streams polls replace them"


def test_the_first_event_of_a_stream_confirms_nothing() -> None:
    script = Script(released(1, "e-c1"))

    async def pieces() -> AsyncIterator[bytes]:
        yield bookmark("e-c1").encode()
        assert script.holder.health().is_live
        yield change("e-c2").encode()

    script.answers += [httpx.ConnectError, httpx.Response(200, content=pieces()), refused(500)]
    age = script.run().holder.health().age
    assert age is not None and age.total_seconds() == pytest.approx(script.clock.time) and script.clock.time > 0


def test_after_a_while_without_the_server_it_is_asked_for_changes_before_a_stream() -> None:
    script = Script(released(1, "e-c1"), refused(503, retry_after="60"), page("e-c1"), stream(bookmark("e-c1")))
    script.run()
    assert script.asked == ["released", *["changes+ e-c1", "changes e-c1"] * 2]
    age = script.holder.health().age
    assert age is not None and age.total_seconds() < 1, "a stream that is open is of a state that is confirmed"


@pytest.fixture
def cached(tmp_path: Path) -> Callable[..., Script]:
    """Makes scripts of a start with a cache file of version 7."""
    path = tmp_path / "agents.json"
    rows: Any = json.loads(released(7, "e-c7").content)
    saved = Saved(workspace_id="w", label="production", tag="7", cursor="e-c7", agents=rows, confirmed_at=1.0)
    CacheFile(path, None, "production").save(saved)

    def make(*answers: Any) -> Script:
        return Script(*answers, cache=CacheFile(path, None, "production"))

    return make


HTML = {"content-type": "text/html"}


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, text="<html>", headers=HTML),
        httpx.Response(404, text="<html>", headers=HTML),
        httpx.Response(302, headers={"location": "https://login.example.com/"}),
        httpx.Response(403, json={"message": "of a gateway"}, headers={"x-request-id": "r"}),
        httpx.Response(401, json={"error": "of a gateway"}),
        httpx.Response(200, json=[]),
    ],
)
def test_an_answer_of_something_else_leaves_the_cache(cached: Callable[..., Script], answer: httpx.Response) -> None:
    script = cached(answer, released(8, "e-c8")).run()
    assert script.steps == [7, 8]
    assert script.clock.waits[0] == 0.3


@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_refusal_of_the_server_drops_the_cache(cached: Callable[..., Script], status: int) -> None:
    script = cached(refused(status)).run()
    assert script.steps == []
    with pytest.raises(errors.StatusError):
        script.holder.is_ready()


def test_a_key_function_that_fails_leaves_the_cache(cached: Callable[..., Script]) -> None:
    def key() -> str:
        calls.append(1)
        if len(calls) == 1:
            raise OSError("no vault")
        return "k"

    calls: list[int] = []
    script = cached(released(8, "e-c8"))
    script.key = key
    assert script.run().steps == [7, 8]
    with Client("http://agents.example.com", key, workspace="w", retry=NO_RETRIES) as client:
        calls.clear()
        with pytest.raises(errors.CredentialError, match="no vault") as failure:
            client.delete_agent("a")
        assert not failure.value.may_have_been_applied


def test_following_from_now_begins_at_the_first_answer() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(f"{request.url.params['after']} {request.url.params['wait']}")
        return page("e-c1") if len(asked) == 1 else page("e-c2", change("e-c2"))

    with Client("http://agents.example.com", "k", workspace="w", transport=httpx.MockTransport(answer)) as client:
        assert next(client.follow_changes())["cursor"] == "e-c2"
    assert asked == ["now 0", "e-c1 25"]
