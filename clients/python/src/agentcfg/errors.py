"""The failures of calls. Each is an `AgentCfgError`; the class says which kind it is."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime


class Outcome(enum.Enum):
    """What a failure says about the request."""

    NOT_APPLIED = "not applied"
    """The server has certainly changed nothing, and a retry may succeed."""
    UNKNOWN = "unknown"
    """The server may have processed the request."""
    FINAL = "final"
    """A retry would fail in the same way."""


@dataclass(frozen=True)
class RateLimit:
    """The state of the credential's rate limit as of one response."""

    limit: int
    """The number of requests allowed in a window."""
    remaining: int
    """The number of requests left in the window."""
    reset: datetime
    """When the window ends, in UTC."""


@dataclass(frozen=True)
class ResponseFacts:
    """What the head of a response says, whatever its body is."""

    status: int | None = None
    request_id: str | None = None
    retry_after: float | None = None
    rate_limit: RateLimit | None = None
    cursor: str | None = None
    fields: tuple[str, ...] = ()
    current_etag: str | None = None


class AgentCfgError(Exception):
    """A call or a lookup has failed."""

    message: str
    """What failed, without status and request id."""
    status: int | None
    """The HTTP status, if a response came."""
    request_id: str | None
    """The `X-Request-Id` of the response, which finds the line in the server's log."""
    retry_after: float | None
    """How many seconds the server asked to wait."""
    rate_limit: RateLimit | None
    """The rate limit as of the response."""
    fields: tuple[str, ...]
    """The fields and parameters that break a rule (400), such as `display_name` and `capabilities[2]`: each once, in
    the order of the message. Empty where the server names none; of very many it names the first."""
    current_etag: str | None
    """The entity tag that the record has now, of a change whose `if_match` is not met (412). The server names it to
    callers that may read the record. It tells whether a copy is the current one, and is no reason to send the same
    change with this tag: that would overwrite what another caller has changed."""
    outcome: Outcome
    """What the failure says about the request."""
    may_have_been_applied: bool
    """Whether a change may have happened although the call failed: read the record before another try."""

    def __init__(self, message: str, *, outcome: Outcome = Outcome.FINAL, facts: ResponseFacts | None = None) -> None:
        """Make an error from a message and what is known about the response."""
        super().__init__(message)
        facts = facts or ResponseFacts()
        self.message = message
        self.status = facts.status
        self.request_id = facts.request_id
        self.retry_after = facts.retry_after
        self.rate_limit = facts.rate_limit
        self.fields = facts.fields
        self.current_etag = facts.current_etag
        self.outcome = outcome
        self.may_have_been_applied = False

    def __str__(self) -> str:
        """Return the message with the status and the request id."""
        known = [
            f"status {self.status}" if self.status else "",
            f"request {self.request_id}" if self.request_id else "",
        ]
        shown = ", ".join(fact for fact in known if fact)
        return f"{self.message} ({shown})" if shown else self.message

    @property
    def is_refusal(self) -> bool:
        """Whether the server itself, and no proxy in front of it, refuses the credential or the request."""
        return False

    def of_a_change(self) -> AgentCfgError:
        """Mark the failed call as one that asked for a change."""
        certain = self.outcome is Outcome.NOT_APPLIED or isinstance(self, (InputError, ConnectError))
        refused = isinstance(self, StatusError) and self.status is not None and 400 <= self.status < 500
        self.may_have_been_applied = not (certain or refused)
        return self


class CredentialError(AgentCfgError):
    """The function that returns the key has failed; nothing was sent."""


class InputError(AgentCfgError, ValueError):
    """An argument makes no valid request; nothing was sent."""


class ConnectError(AgentCfgError):
    """No connection could be made."""


class ExchangeError(AgentCfgError):
    """The connection broke before the response was complete."""


class TimedOut(ExchangeError):
    """No response in time."""


class AnswerError(AgentCfgError):
    """A response that this client cannot decode."""


class StatusError(AgentCfgError):
    """The server, or a proxy in front of it, has answered with a failure."""

    is_from_server: bool = False
    """Whether the answer has the form of the server's own. Those of a proxy have another one."""

    @property
    def is_refusal(self) -> bool:
        """Whether the server itself, and no proxy in front of it, refuses the credential or the request."""
        return self.is_from_server and self.status in (400, 401, 403)


class NotModified(StatusError):
    """304: what the caller has is current. `cursor` is the position in the change feed at which that was so."""

    cursor: str | None = None


class BadRequest(StatusError):
    """400: a field or a parameter is wrong; the message names it and the rule, and `fields` has the names."""


class Unauthorized(StatusError):
    """401: the key or token is unknown, expired or revoked."""


class Forbidden(StatusError):
    """403: the credential lacks the permission, or has no part in the workspace."""


class NotFound(StatusError):
    """404: there is no such record."""


class Conflict(StatusError):
    """409: the change contradicts what is there."""


class Gone(StatusError):
    """410: the position in the change feed is no longer one of the workspace."""


class PreconditionFailed(StatusError):
    """412: another caller has changed the record since it was read. `current_etag` is its tag now."""


class PlanLimit(StatusError):
    """422: the workspace's plan, or a limit of the service, allows no more."""


class RateLimited(StatusError):
    """429: the rate limit is used up, or there are too many streams."""


class ServerError(StatusError):
    """5xx: the server or a proxy has failed."""


class Unavailable(ServerError):
    """503: storage, or what else the call needs, is not available now."""


class Lagging(AgentCfgError):
    """A server has answered from a state before one that was seen already."""


class NotReady(AgentCfgError):
    """No state yet: neither the server nor the cache file has given one."""


class NoSuchAgent(AgentCfgError, KeyError):
    """No active agent of this id bears the label."""


class PromptError(AgentCfgError, ValueError):
    """Variables of a prompt are missing, or are not declared by the agent."""


STATUS_CLASSES: dict[int, type[StatusError]] = {
    304: NotModified,
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    412: PreconditionFailed,
    422: PlanLimit,
    429: RateLimited,
    503: Unavailable,
}


def of_status(message: str, facts: ResponseFacts, *, is_from_server: bool) -> StatusError:
    """Make the error of a response whose status is no success.

    A 503 of the server itself with `Retry-After` promises that nothing was changed. After a 502, 503 or 504 of a proxy
    the outcome is unknown.
    """
    status = facts.status or 0
    is_from_server = is_from_server and facts.request_id is not None
    promised = is_from_server and facts.retry_after is not None
    if status == 429 or (status == 503 and promised):
        outcome = Outcome.NOT_APPLIED
    elif 502 <= status <= 504:
        outcome = Outcome.UNKNOWN
    else:
        outcome = Outcome.FINAL
    kind = STATUS_CLASSES.get(status, ServerError if status >= 500 else StatusError)
    error = kind(message, outcome=outcome, facts=facts)
    error.is_from_server = is_from_server
    if isinstance(error, NotModified):
        error.cursor = facts.cursor
    return error


def may_pass(error: AgentCfgError) -> bool:
    """Whether another attempt may succeed without any action of the user."""
    if isinstance(error, (ConnectError, Lagging)) or error.outcome is not Outcome.FINAL:
        return True
    return error.status is not None and (error.status == 408 or error.status >= 500)
