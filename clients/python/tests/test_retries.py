"""Which calls are repeated, and when. A server cannot be made to give these answers, so a transport does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import pytest

from agentcfg import NO_RETRIES, AgentCfgError, AsyncClient, Client, errors
from agentcfg.calls import retry_after
from fake_clock import FakeClock

URL = "http://agents.example.com/under/a/path"
FROM_SERVER = {"x-request-id": "r1"}
Reply = httpx.Response | type[httpx.TransportError]


def refused(status: int, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, json={"error": "no"}, headers={**FROM_SERVER, **named})


def page(status: int, **headers: str) -> httpx.Response:
    return httpx.Response(status, text="<html>", headers={"content-type": "text/html", **headers})


DONE = httpx.Response(200, json={"success": True})


def run(replies: list[Reply], call: Callable[[Client], object]) -> tuple[int, list[float], AgentCfgError | None]:
    """Return the number of requests, the waits, and the failure."""
    left = list(replies)
    clock = FakeClock()

    def reply(request: httpx.Request) -> httpx.Response:
        given = left.pop(0)
        if isinstance(given, httpx.Response):
            return httpx.Response(given.status_code, content=given.content, headers=given.headers)
        raise given("from the test", request=request)

    failure = None
    with Client(URL, "svc_test_x", clock=clock, transport=httpx.MockTransport(reply)) as client:
        try:
            call(client)
        except AgentCfgError as error:
            failure = error
    return len(replies) - len(left), clock.waits, failure


def read(client: Client) -> object:
    return client.list_webhook_deliveries("x")


def change(client: Client) -> object:
    return client.revoke_api_key("x")


def report(client: Client) -> object:
    return client.report_agent_status("a", {"status": "idle"})


def dry_run(client: Client) -> object:
    return client.promote_agent_labels({"from": "a", "to": "b"}, workspace_id="w", dry_run=True)


UNKNOWN: list[Reply] = [httpx.ReadError, httpx.ReadTimeout, page(502), page(503), page(504), refused(503)]


@pytest.mark.parametrize("reply", UNKNOWN)
def test_what_only_reads_is_repeated_after_an_unknown_outcome(reply: Reply) -> None:
    ok = httpx.Response(200, json=[])
    assert run([reply, ok], read)[:2] == (2, [0.15])
    assert run([reply, ok], dry_run)[:2] == (2, [0.15])
    assert run([reply, httpx.Response(200, json={})], report)[:2] == (2, [0.15])


@pytest.mark.parametrize("reply", UNKNOWN)
def test_a_change_is_not_repeated_after_an_unknown_outcome(reply: Reply) -> None:
    requests, waits, failure = run([reply, DONE], change)
    assert (requests, waits) == (1, [])
    assert failure is not None and failure.may_have_been_applied


@pytest.mark.parametrize(
    ("reply", "wait"),
    [
        (httpx.ConnectError, 0.15),
        (httpx.ConnectTimeout, 0.15),
        (refused(429), 0.15),
        (refused(429, retry_after="7"), 7.15),
        (page(429), 0.15),
        (refused(503, retry_after="2"), 2.15),
    ],
)
def test_a_change_is_repeated_when_it_was_not_applied(reply: Reply, wait: float) -> None:
    assert run([reply, DONE], change) == (2, [wait], None)


@pytest.mark.parametrize("reply", [refused(400), refused(401), refused(404), refused(500), page(413), page(302)])
def test_a_final_failure_is_not_repeated(reply: Reply) -> None:
    requests, waits, failure = run([reply, DONE], read)
    assert (requests, waits) == (1, []) and isinstance(failure, errors.StatusError)
    assert not failure.may_have_been_applied


def test_there_are_three_retries() -> None:
    requests, waits, failure = run([refused(429)] * 9, change)
    assert (requests, waits) == (4, [0.15, 0.3, 0.6]) and isinstance(failure, errors.RateLimited)
    assert not failure.may_have_been_applied


def test_a_wait_that_does_not_fit_into_the_call_is_not_begun() -> None:
    requests, waits, failure = run([refused(429, retry_after="30"), refused(429, retry_after="30"), DONE], change)
    assert (requests, waits) == (2, [30.15]) and failure is not None and failure.retry_after == 30


def test_the_asynchronous_client_keeps_the_same_rules() -> None:
    replies = [refused(429, retry_after="7"), DONE]
    clock = FakeClock()

    async def work() -> None:
        transport = httpx.MockTransport(lambda _: replies.pop(0))
        async with AsyncClient(URL, "svc_test_x", clock=clock, transport=transport) as client:
            await client.revoke_api_key("x")

    asyncio.run(work())
    assert clock.waits == [7.15] and replies == []


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (page(200), "the answer is text/html, not the JSON of agentcfg"),
        (httpx.Response(200, json={}), "the answer is no JSON array"),
        (httpx.Response(200, text="{", headers={"content-type": "application/json"}), "the answer is no JSON: "),
        (page(302, location="https://sign-in.example.com"), "redirect to https://sign-in.example.com, which is not"),
        (page(413), "the answer is an error in text/html that is not from agentcfg (status 413)"),
        (httpx.Response(418), "the answer is an error without a message (status 418)"),
        (refused(404), "no (status 404, request r1)"),
    ],
)
def test_a_failure_is_described(reply: Reply, message: str) -> None:
    failure = run([reply], read)[2]
    assert failure is not None and message in str(failure)


def test_requests_name_what_they_mean() -> None:
    seen: list[httpx.Request] = []

    def reply(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"success": True})

    with Client(URL, "svc_test_x", workspace="w", transport=httpx.MockTransport(reply)) as client:
        client.delete_agent("a", message="a b+c&d=é/🦀?#%~", if_match='"t"')
    request = seen[0]
    assert str(request.url).startswith("http://agents.example.com/under/a/path/api/agents/configs?agent_id=a&")
    assert request.url.query == b"agent_id=a&workspace_id=w&message=a%20b%2Bc%26d%3D%C3%A9%2F%F0%9F%A6%80%3F%23%25~"
    assert request.headers["if-match"] == '"t"' and request.headers["authorization"] == "Bearer svc_test_x"
    assert request.headers["user-agent"].startswith("agentcfg-python/")


def test_a_response_that_is_too_long_is_refused() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=["x" * 100]))
    client = Client(URL, "k", max_response_bytes=50, transport=transport)
    with client, pytest.raises(errors.AnswerError, match="longer than the 50 bytes allowed"):
        client.list_webhook_deliveries("x")


def test_retry_after_is_seconds_or_a_date() -> None:
    def wait(**headers: str) -> float | None:
        return retry_after(httpx.Headers({name.replace("_", "-"): value for name, value in headers.items()}))

    date = "Fri, 20 Nov 2026 09:30:30 GMT"
    assert wait(retry_after="7") == 7
    assert wait(retry_after=date, date="Fri, 20 Nov 2026 09:30:00 GMT") == 30
    assert wait(retry_after=date, date="Fri, 20 Nov 2026 10:00:00 GMT") == 0
    assert wait(retry_after=date) is None and wait(retry_after="soon") is None and wait() is None


@pytest.mark.parametrize(
    ("status", "header", "fields"),
    [
        (400, "display_name, capabilities[2]", ("display_name", "capabilities[2]")),
        (400, "parameters.gr%C3%B6%C3%9Fe%2C%20x, parameters.%22%22", ("parameters.größe, x", 'parameters.""')),
        (400, "role", ("role",)),
        (400, None, ()),
        # What a proxy may have made of it.
        (400, "", ()),
        (400, " , ,role,", ("role",)),
        (400, "%ff, %C3, role, %, %zz", ("role", "%", "%zz")),
        (400, "größe, role", ()),
        (409, "role", ()),
        (200, "role", None),
    ],
)
def test_faulty_fields_are_named(status: int, header: str | None, fields: tuple[str, ...] | None) -> None:
    headers = [] if header is None else [(b"fault-fields", header.encode())]
    reply = httpx.Response(status, json={"error": "no"}, headers=headers)
    failure = run([reply], change)[2]
    assert (None if failure is None else failure.fields) == fields


@pytest.mark.parametrize(
    ("status", "header", "current"),
    [
        (412, '"k3j9x0ab-a9"', '"k3j9x0ab-a9"'),
        (412, '"k3j9x0ab-a9-gzip"', '"k3j9x0ab-a9"'),
        (412, None, None),
        (409, '"k3j9x0ab-a9"', None),
        # What a proxy may have made of it.
        *[(412, changed, None) for changed in ('W/"k3j9x0ab-a9"', "k3j9x0ab-a9", '""', '"', "", '"a" b"', '"ä"')],
    ],
)
def test_a_condition_that_is_not_met_has_the_current_tag(status: int, header: str | None, current: str | None) -> None:
    headers = [] if header is None else [(b"etag", header.encode())]
    reply = httpx.Response(status, json={"error": "no"}, headers=headers)
    failure = run([reply], change)[2]
    assert failure is not None and failure.current_etag == current and failure.fields == ()


def test_a_tag_is_the_same_in_gzip() -> None:
    def etag(text: str) -> str | None:
        transport = httpx.MockTransport(lambda _: httpx.Response(200, json=[], headers={"etag": text}))
        with Client(URL, "k", workspace="w", transport=transport) as client:
            return client.list_agents().etag

    assert etag('"k3j9x0ab-w7-gzip"') == etag('"k3j9x0ab-w7"') == '"k3j9x0ab-w7"'
    assert etag('W/"x"') == 'W/"x"'


class Cut(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body whose connection breaks."""

    def __iter__(self) -> Iterator[bytes]:
        yield b'{"err'
        raise httpx.ReadError("from the test")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self:
            yield piece


@pytest.mark.parametrize(("status", "attempts"), [(404, 1), (429, 4)])
def test_the_status_of_a_failure_counts_though_its_body_is_cut_off(status: int, attempts: int) -> None:
    clock, asked = FakeClock(), 0

    def reply(_: httpx.Request) -> httpx.Response:
        nonlocal asked
        asked += 1
        return httpx.Response(status, headers=FROM_SERVER, stream=Cut())

    def check(failure: errors.StatusError) -> None:
        nonlocal asked
        assert (failure.status, failure.request_id, asked) == (status, "r1", attempts)
        assert not failure.may_have_been_applied
        asked = 0

    with Client(URL, "k", clock=clock, transport=httpx.MockTransport(reply)) as client:
        with pytest.raises(errors.StatusError) as failed:
            change(client)
        check(failed.value)

    async def work() -> None:
        async with AsyncClient(URL, "k", clock=clock, transport=httpx.MockTransport(reply)) as client:
            with pytest.raises(errors.StatusError) as failed:
                await client.revoke_api_key("x")
            check(failed.value)

    asyncio.run(work())


def test_an_answer_that_is_cut_off_has_its_request() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, headers=FROM_SERVER, stream=Cut()))
    with Client(URL, "k", transport=transport) as client, pytest.raises(errors.ExchangeError) as failed:
        change(client)
    assert failed.value.request_id == "r1" and "broke within the answer" in str(failed.value)
    assert failed.value.may_have_been_applied


def test_what_reads_by_post_may_not_have_been_applied() -> None:
    failure = run([page(504)] * 4, lambda client: client.render_agent_prompt("a"))[2]
    assert failure is not None and failure.status == 504 and not failure.may_have_been_applied


@pytest.mark.parametrize("condition", ['"ä"', '"x"\r\nX-Other: y', "\0"])
def test_a_condition_that_no_header_can_hold_is_not_sent(condition: str) -> None:
    failure = run([], lambda client: client.delete_agent("a", if_match=condition))[2]
    assert isinstance(failure, errors.InputError) and "If-Match holds" in str(failure)


def test_a_closed_client_says_so() -> None:
    client = Client(URL, "k")
    client.close()
    with pytest.raises(errors.InputError, match="the client is closed"):
        change(client)

    async def work() -> None:
        client = AsyncClient(URL, "k")
        await client.close()
        with pytest.raises(errors.InputError, match="the client is closed"):
            await client.revoke_api_key("x")

    asyncio.run(work())


@pytest.mark.parametrize("line", ["<html>", "[]", '{"kind":'])
def test_an_export_of_something_else_is_named(line: str) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, text=line))
    with Client(URL, "k", transport=transport) as client, pytest.raises(errors.AnswerError, match="no JSON object"):
        list(client.export_workspace(workspace_id="w"))


def test_requests_go_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(503)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with HTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.server_port}")
        with Client(URL, "k", retry=NO_RETRIES) as client, pytest.raises(errors.Unavailable, match="without a message"):
            client.who_am_i()
        proxy.shutdown()
        thread.join()
    assert asked == [f"{URL}/api/whoami"]
