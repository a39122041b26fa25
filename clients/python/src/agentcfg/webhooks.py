"""Verification of webhooks, as Standard Webhooks describes."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from .errors import AgentCfgError, InputError
from .timing import SYSTEM_CLOCK, Clock

TOLERANCE = 300
"""How many seconds the time of a request may differ from the receiver's clock."""


class WebhookError(AgentCfgError):
    """A request was not sent by the server, or is too old. Answer it with 400 and do not handle it."""


class WebhookVerifier:
    """Checks the signatures of requests with the secret of a webhook (`whsec_…`), or with several of them."""

    def __init__(
        self, secrets: str | Iterable[str], *, tolerance: int = TOLERANCE, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        """Keep the secrets. While one is rotated, both are valid for a day."""
        self._keys = [_key(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
        if not self._keys:
            raise InputError("a webhook needs a secret")
        self._tolerance = tolerance
        self._clock = clock

    def verify(self, body: bytes | str, headers: Mapping[str, str]) -> dict[str, Any]:
        """Return the JSON object of a request whose signature is valid, given its body as it came.

        The same `webhook-id` can come more than once: handle each once.
        """
        raw = body.encode(errors="replace") if isinstance(body, str) else body
        lower = {name.lower(): value for name, value in headers.items()}
        try:
            identifier, moment = lower["webhook-id"], lower["webhook-timestamp"]
            signatures = [given.encode(errors="replace") for given in lower["webhook-signature"].split()]
            age = self._clock.now() - _seconds(moment)
        except KeyError as missing:
            raise WebhookError(f"the header {missing.args[0]} is missing") from None
        except ValueError:
            raise WebhookError("webhook-timestamp is no number of seconds") from None
        if abs(age) > self._tolerance:
            raise WebhookError(f"webhook-timestamp is {age:.0f} seconds old, at most {self._tolerance} are allowed")
        signed = f"{identifier}.{moment}.".encode(errors="replace") + raw
        expected = [b"v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)) for key in self._keys]
        if not any(hmac.compare_digest(given, own) for given in signatures for own in expected):
            raise WebhookError("no signature is valid")
        try:
            event: object = json.loads(raw)
        except ValueError:
            event = None
        if not isinstance(event, dict):
            raise WebhookError("the body is no JSON object")
        return cast("dict[str, Any]", event)


def _seconds(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise ValueError(text)
    return int(text)


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError:
        key = b""
    if not key:
        raise InputError("the secret of a webhook must be whsec_ and base64")
    return key
