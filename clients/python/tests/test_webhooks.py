"""Verification of webhooks: the public example, the reference implementation, and deliveries of the real server."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import standardwebhooks

from agentcfg import WebhookError, WebhookVerifier, errors
from conftest import SECONDS, Server
from fake_clock import FakeClock

# The example of the Standard Webhooks specification.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = '{"test": 2432232314}'
HEADERS = {
    "Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "Webhook-Timestamp": "1614265330",
    "Webhook-Signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}


class At(FakeClock):
    """A clock that shows one moment."""

    def __init__(self, moment: float) -> None:
        super().__init__()
        self.moment = moment

    def now(self) -> float:
        return self.moment


def verifier(moment: float = 1614265330, secrets: str | list[str] = SECRET) -> WebhookVerifier:
    return WebhookVerifier(secrets, clock=At(moment))


def test_the_public_example_is_valid() -> None:
    assert verifier().verify(BODY, HEADERS) == {"test": 2432232314}
    assert verifier().verify(BODY.encode(), HEADERS) == {"test": 2432232314}
    assert verifier(secrets=["whsec_bmV3", SECRET]).verify(BODY, HEADERS) == {"test": 2432232314}
    several = {**HEADERS, "Webhook-Signature": f"v1a,xx v1,bm8= {HEADERS['Webhook-Signature']}"}
    assert verifier().verify(BODY, several) == {"test": 2432232314}


@pytest.mark.parametrize(
    ("change", "body", "moment", "reason"),
    [
        ({}, BODY + " ", 1614265330, "no signature is valid"),
        ({"Webhook-Id": "other"}, BODY, 1614265330, "no signature is valid"),
        ({"Webhook-Timestamp": "1614265331"}, BODY, 1614265330, "no signature is valid"),
        ({"Webhook-Signature": ""}, BODY, 1614265330, "no signature is valid"),
        ({"Webhook-Signature": "v2" + HEADERS["Webhook-Signature"][2:]}, BODY, 1614265330, "no signature is valid"),
        ({"Webhook-Signature": "é"}, BODY, 1614265330, "no signature is valid"),
        ({"Webhook-Signature": "\ud800"}, BODY, 1614265330, "no signature is valid"),
        ({"Webhook-Id": "\ud800"}, BODY, 1614265330, "no signature is valid"),
        ({}, "\ud800", 1614265330, "no signature is valid"),
        ({"Webhook-Timestamp": "soon"}, BODY, 1614265330, "no number"),
        ({"Webhook-Timestamp": "9" * 400}, BODY, 1614265330, "no number"),
        ({"Webhook-Timestamp": "-1614265330"}, BODY, 1614265330, "no number"),
        ({"Webhook-Timestamp": " 1614265330"}, BODY, 1614265330, "no number"),
        ({}, BODY, 1614265631, "301 seconds old"),
        ({}, BODY, 1614265029, "-301 seconds old"),
    ],
)
def test_what_was_not_sent_like_this_is_refused(change: dict[str, str], body: str, moment: float, reason: str) -> None:
    with pytest.raises(WebhookError, match=reason):
        verifier(moment).verify(body, {**HEADERS, **change})


@pytest.mark.parametrize("missing", list(HEADERS))
def test_a_header_that_is_missing_is_named(missing: str) -> None:
    headers = {name: value for name, value in HEADERS.items() if name != missing}
    with pytest.raises(WebhookError, match=f"{missing.lower()} is missing"):
        verifier().verify(BODY, headers)


def test_the_reference_implementation_signs_what_is_valid() -> None:
    moment = datetime.now(timezone.utc)
    for body in ("{}", '{"é": "🦀"}', '{"a":1}\n'):
        signature = standardwebhooks.Webhook(SECRET).sign("msg_1", moment, body)
        headers = {
            "webhook-id": "msg_1",
            "webhook-timestamp": str(int(moment.timestamp())),
            "webhook-signature": signature,
        }
        WebhookVerifier(SECRET).verify(body, headers)
    signature = standardwebhooks.Webhook(SECRET).sign("msg_1", moment, "[]")
    with pytest.raises(WebhookError, match="no JSON object"):
        WebhookVerifier(SECRET).verify("[]", {**headers, "webhook-signature": signature})


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_é", "whsec_x"])
def test_a_secret_is_checked(secret: str) -> None:
    with pytest.raises(errors.InputError, match="must be whsec_ and base64"):
        WebhookVerifier(secret)
    with pytest.raises(errors.InputError, match="needs a secret"):
        WebhookVerifier([])


@pytest.fixture
def receiver() -> Iterator[tuple[str, queue.Queue[tuple[dict[str, str], bytes]]]]:
    """A receiver's address, and what it has received."""
    received: queue.Queue[tuple[dict[str, str], bytes]] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            received.put((dict(self.headers.items()), body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield f"127.0.0.1:{http.server_port}", received
        http.shutdown()
        thread.join()


def test_a_delivery_of_the_server_is_valid(
    receiver: tuple[str, queue.Queue[tuple[dict[str, str], bytes]]], tmp_path: Path
) -> None:
    address, received = receiver
    server = Server(tmp_path, webhook_allowed_hosts=address)
    try:
        studio = server.studio()
        created = studio.owner.create_webhook({"url": f"http://{address}/hook"})
        studio.agent("a")
        types = [
            WebhookVerifier(created["secret"]).verify(body, headers)["type"] for headers, body in next_two(received)
        ]
        assert sorted(types) == ["agent.created", "label.set"]
    finally:
        server.kill()


def next_two(received: queue.Queue[tuple[dict[str, str], bytes]]) -> Iterator[tuple[dict[str, str], bytes]]:
    for _ in range(2):
        headers, body = received.get(timeout=SECONDS)
        yield headers, body
