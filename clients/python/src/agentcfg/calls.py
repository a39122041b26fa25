"""A request as the methods of the clients describe it, and the reading of its response, without input and output."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, Generic, Literal, TypeVar, cast
from urllib.parse import quote, unquote_to_bytes, urlsplit

import httpx

from . import errors, types
from .errors import AgentCfgError, Outcome, RateLimit, ResponseFacts

T = TypeVar("T")

Workspace = Literal["none", "optional", "required", "body"]
QueryValue = str | int | bool | None

MAX_ERROR_BYTES = 64 * 1024
"""Larger than any error message of the service."""

# The end of the entity tag of an answer in gzip, which conditions may have or leave out.
_IN_GZIP = '-gzip"'
_STRONG_ETAG = re.compile(r'"[!#-~]+"')


@dataclass(frozen=True)
class Answer(Generic[T]):
    """A value with what the headers of its response say about it."""

    value: T
    """The body."""
    etag: str | None
    """The entity tag, for `if_match` and `if_none_match`."""
    version: int | None
    """The number of the agent's current version, where the answer is of one agent."""
    cursor: str | None
    """The position in the change feed that the answer is of, where it has one."""
    request_id: str | None
    """The `X-Request-Id`."""


@dataclass(frozen=True)
class ApiResponse:
    """A complete response of a successful call."""

    status: int
    headers: httpx.Headers
    body: bytes


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request before it is bound to a server and a credential."""

    method: str
    path: str
    read: Callable[[ApiResponse], T]
    query: Mapping[str, QueryValue] = field(default_factory=lambda: dict[str, QueryValue]())
    headers: Mapping[str, str | None] = field(default_factory=lambda: dict[str, str | None]())
    body: Mapping[str, Any] | None = None
    workspace: Workspace = "none"
    is_idempotent: bool = False
    is_read: bool = False
    """Whether it changes nothing, whatever its method."""
    patience: float = 0.0
    """Seconds that the server may wait before it answers."""

    @property
    def may_be_repeated(self) -> bool:
        """Whether sending it twice has the same effect as sending it once."""
        return self.is_idempotent or not self.changes

    @property
    def changes(self) -> bool:
        """Whether the request asks for a change."""
        return self.method != "GET" and not self.is_read and self.query.get("dry_run") is not True

    @property
    def lacks_workspace(self) -> bool:
        """Whether the request needs a workspace and names none."""
        if self.workspace == "body":
            return self.body is not None and "workspace_id" not in self.body
        is_named = self.query.get("workspace_id") is not None
        # Where an agent may be left out, the workspace is required without it.
        is_of_all = "agent_id" in self.query and self.query["agent_id"] is None
        return not is_named and (self.workspace == "required" or (self.workspace == "optional" and is_of_all))

    def in_workspace(self, workspace_id: str | None) -> Call[T]:
        """Return the request with this workspace where it names none itself."""
        if workspace_id is None or self.workspace == "none":
            return self
        query, body = dict(self.query), self.body
        if self.workspace != "body":
            query["workspace_id"] = query.get("workspace_id") or workspace_id
        elif body is not None:
            body = {"workspace_id": workspace_id, **body}
        return replace(self, query=query, body=body)

    def target(self) -> str:
        """Return path and query. Everything but what RFC 3986 calls unreserved is percent-encoded."""
        pairs = [f"{name}={url_part(_text(value))}" for name, value in self.query.items() if value is not None]
        return f"{self.path}?{'&'.join(pairs)}" if pairs else self.path


def url_part(text: str) -> str:
    """Return a text as part of a URL."""
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise errors.InputError(f"{text[:200]!r} holds half of a surrogate pair") from None


def _text(value: str | int | bool) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def check_url(url: str) -> str:
    """Return the URL of a server without a slash at its end."""
    if not isinstance(url, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise errors.InputError(f"url must be a text, got {url!r}")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise errors.InputError(f"url is not valid: {error}") from None
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise errors.InputError("url must have no user, query or fragment")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise errors.InputError(f"url must begin with http:// or https:// and name a host, got {url!r}")
    return url.rstrip("/")


Key = str | Callable[[], str]
"""An API key or a session token, or a function that returns the one to use now."""


def key_source(key: Key) -> Callable[[], str]:
    """Return what gives the credential of a request. A text is checked at once."""
    if callable(key):
        return lambda: check_key(_called(key))
    checked = check_key(key)
    return lambda: checked


def _called(key: Callable[[], str]) -> str:
    try:
        return key()
    except Exception as error:
        message = f"the function that returns the key has failed: {error!r}"
        raise errors.CredentialError(message, outcome=Outcome.NOT_APPLIED) from error


def check_key(key: str) -> str:
    """Return a credential that can be sent in a header."""
    if not key:
        raise errors.InputError("key is empty")
    if not all("!" <= character <= "~" for character in key):
        raise errors.InputError("key holds a space, a line break or another character that cannot be sent")
    return key


def check_header(name: str, value: str) -> str:
    """Return the value of a header field that can be sent."""
    if not all(character == "\t" or " " <= character <= "~" for character in value):
        raise errors.InputError(f"{name} holds a line break or another character that cannot be sent")
    return value


def check_workspace(workspace: str | None) -> str | None:
    """Return a workspace as the server writes it."""
    return None if workspace is None else workspace.lower()


def only_workspace(who: Mapping[str, Any]) -> str:
    """Return the one workspace of a credential."""
    ids: list[str] = [entry["id"] for entry in who["workspaces"]]
    if len(ids) != 1:
        raise errors.InputError(f"the credential opens {len(ids)} workspaces: name one as `workspace`")
    return ids[0]


def facts_of(status: int, headers: httpx.Headers) -> ResponseFacts:
    """Return what the head of a response says."""
    return ResponseFacts(
        status=status,
        request_id=_quoted(headers.get("x-request-id")),
        retry_after=retry_after(headers),
        rate_limit=rate_limit(headers),
        cursor=headers.get("change-cursor"),
        fields=fault_fields(headers) if status == 400 else (),
        current_etag=current_etag(headers) if status == 412 else None,
    )


def fault_fields(headers: httpx.Headers) -> tuple[str, ...]:
    """Return the names in `Fault-Fields`, without those that are not UTF-8 after percent-decoding."""
    text: str = headers.get("fault-fields", "")
    names = [_decoded_name(name.strip()) for name in text.split(",")] if text.isascii() else []
    return tuple(name for name in names if name)


def _decoded_name(name: str) -> str:
    try:
        return unquote_to_bytes(name).decode()
    except UnicodeDecodeError:
        return ""


def etag_of(headers: httpx.Headers) -> str | None:
    """Return the entity tag. It is the same whether the answer came in gzip or not, so that tags can be compared."""
    etag: str | None = headers.get("etag")
    return f'{etag.removesuffix(_IN_GZIP)}"' if etag is not None and etag.endswith(_IN_GZIP) else etag


def tag_in(etag: str | None) -> str:
    """Return what is between the quotes of an entity tag; empty where there is nothing."""
    found = re.fullmatch(r'(?:W/)?"([!#-~]*)"', etag or "")
    return found[1] if found else ""


def current_etag(headers: httpx.Headers) -> str | None:
    """Return the entity tag; `None` where it is not a strong one, such as one that a proxy has changed."""
    etag = etag_of(headers)
    return etag if etag is not None and _STRONG_ETAG.fullmatch(etag) else None


def retry_after(headers: httpx.Headers) -> float | None:
    """Return the delay that `Retry-After` asks for. A date is compared with the response's own `Date`."""
    text = headers.get("retry-after", "").strip()
    if text.isdecimal():
        return float(text)
    try:
        return max(0.0, (parsedate_to_datetime(text) - parsedate_to_datetime(headers["date"])).total_seconds())
    except (KeyError, ValueError, TypeError):
        return None


def rate_limit(headers: httpx.Headers) -> RateLimit | None:
    """Return the rate limit; `None` unless all three headers are there and valid."""
    try:
        limit, remaining, reset = (int(headers[f"x-ratelimit-{name}"]) for name in ("limit", "remaining", "reset"))
        moment = datetime.fromtimestamp(reset, timezone.utc)
    except (KeyError, ValueError, OverflowError, OSError):
        return None
    return RateLimit(limit, remaining, moment) if limit >= 0 and remaining >= 0 else None


def refusal(status: int, headers: httpx.Headers, body: bytes) -> errors.StatusError:
    """Return the error of a response whose status is no success."""
    facts = facts_of(status, headers)
    try:
        content: object = json.loads(body)
    except ValueError:
        content = None
    if isinstance(content, dict):
        message = cast("dict[str, object]", content).get("error")
        if isinstance(message, str):
            return errors.of_status(message, facts, is_from_server=True)
    if status == 304:
        message = "nothing has changed"
    elif 300 <= status < 400:
        message = f"the answer is a redirect to {_quoted(headers.get('location'))}, which is not followed"
    elif "content-type" in headers:
        message = f"the answer is an error in {_quoted(headers['content-type'])} that is not from agentcfg"
    else:
        message = "the answer is an error without a message"
    return errors.of_status(message, facts, is_from_server=False)


def transport_error(error: httpx.TransportError, facts: ResponseFacts | None = None) -> AgentCfgError:
    """Return the error of an exchange that has failed. `facts` are of a response that has begun."""
    if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)):
        refused = _refused_certificate(error)
        if refused is not None:
            return errors.ConnectError(f"the server's certificate was refused: {refused}")
        return errors.ConnectError(f"no connection could be made: {error}", outcome=Outcome.NOT_APPLIED)
    if isinstance(error, httpx.UnsupportedProtocol):
        return errors.InputError(str(error))
    if isinstance(error, httpx.TimeoutException):
        return timed_out()
    where = "" if facts is None else " within the answer"
    return errors.ExchangeError(f"the connection broke{where}: {error}", outcome=Outcome.UNKNOWN, facts=facts)


def timed_out() -> errors.TimedOut:
    """Return the error of an attempt without a response in time."""
    return errors.TimedOut("no answer came in time", outcome=Outcome.UNKNOWN)


def _refused_certificate(error: BaseException | None) -> str | None:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_message
        error = error.__cause__ or error.__context__
    return None


def too_long(limit: int, facts: ResponseFacts) -> errors.AnswerError:
    """Return the error of a response beyond the size that the client accepts."""
    return errors.AnswerError(f"the answer is longer than the {limit} bytes allowed", facts=facts)


def _decoded(response: ApiResponse, *kinds: type[dict[Any, Any] | list[Any]]) -> Any:
    facts = facts_of(response.status, response.headers)
    content_type = response.headers.get("content-type", "")
    try:
        value = json.loads(response.body)
    except ValueError as error:
        if not content_type.startswith("application/json"):
            message = f"the answer is {_quoted(content_type) or 'of no type'}, not the JSON of agentcfg"
            raise errors.AnswerError(message, facts=facts) from None
        raise errors.AnswerError(f"the answer is no JSON: {error}", facts=facts) from None
    if not isinstance(cast("object", value), kinds):
        wanted = " or ".join("array" if kind is list else "object" for kind in kinds)
        raise errors.AnswerError(f"the answer is no JSON {wanted}", facts=facts)
    return value


def read_object(response: ApiResponse) -> Any:
    """Read a JSON object."""
    return _decoded(response, dict)


def read_list(response: ApiResponse) -> Any:
    """Read a JSON array."""
    return _decoded(response, list)


def read_object_or_list(response: ApiResponse) -> Any:
    """Read a JSON object or a JSON array."""
    return _decoded(response, dict, list)


def read_line(line: bytes) -> Any:
    """Read one line of an answer of JSON objects."""
    try:
        value: object = json.loads(line)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise errors.AnswerError("a line of the answer is no JSON object")
    return cast("dict[str, Any]", value)


def read_success(response: ApiResponse) -> None:
    """Read an answer that reports success and nothing else."""
    _decoded(response, dict)


WHO_AM_I: Call[types.WhoAmI] = Call("GET", "/api/whoami", read_object)
"""Asks who the caller is."""


def answer(read: Callable[[ApiResponse], T]) -> Callable[[ApiResponse], Answer[T]]:
    """Read a value with its headers."""

    def read_answer(response: ApiResponse) -> Answer[T]:
        headers = response.headers
        version = headers.get("agent-version", "")
        return Answer(
            value=read(response),
            etag=etag_of(headers),
            version=int(version) if version.isdecimal() else None,
            cursor=headers.get("change-cursor"),
            request_id=_quoted(headers.get("x-request-id")),
        )

    return read_answer


def read_changes(after: str | None, wait: int, workspace_id: str | None) -> Call[Answer[list[types.ChangeEvent]]]:
    """Ask for the changes after a cursor, for which the server waits some seconds if there are none yet."""
    query: dict[str, QueryValue] = {"workspace_id": workspace_id, "after": after, "limit": 1000, "wait": wait}
    return Call("GET", "/api/changes", answer(read_list), query=query, workspace="required", patience=wait)


def cursor_of(answered: Answer[Any] | errors.NotModified) -> str:
    """Return the position in the change feed of an answer that has one."""
    if answered.cursor is None:
        raise errors.AnswerError("the answer has no Change-Cursor")
    return answered.cursor


def _quoted(text: str | None) -> str | None:
    return None if text is None else text[:200]
