"""Client of agentcfg: the released configurations of AI agents in memory, and the REST API."""

from . import errors, types
from ._version import __version__
from .agent import Agent
from .calls import Answer
from .client import AsyncClient, Client
from .errors import AgentCfgError, NoSuchAgent, NotReady, PromptError, StatusError
from .mirror import AgentCfg, AsyncAgentCfg
from .snapshot import Change, Health, Snapshot
from .timing import NO_RETRIES, RetryPolicy, Timeouts
from .webhooks import WebhookError, WebhookVerifier

__all__ = [
    "NO_RETRIES",
    "Agent",
    "AgentCfg",
    "AgentCfgError",
    "Answer",
    "AsyncAgentCfg",
    "AsyncClient",
    "Change",
    "Client",
    "Health",
    "NoSuchAgent",
    "NotReady",
    "PromptError",
    "RetryPolicy",
    "Snapshot",
    "StatusError",
    "Timeouts",
    "WebhookError",
    "WebhookVerifier",
    "__version__",
    "errors",
    "types",
]
