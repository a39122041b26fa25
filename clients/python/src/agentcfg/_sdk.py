"""The settings with which the SDKs of the providers call models through the server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .calls import url_part


@dataclass(frozen=True)
class ModelCalls:
    """Where the model calls of one agent go, and as whom."""

    url: str
    key: str
    agent_id: str
    label: str
    workspace: str | None
    provider: str

    def openai(self, omit: object, variables: Mapping[str, str] | None, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of `openai.OpenAI`; `omit` is what leaves a header out."""
        own = {"OpenAI-Organization": omit, "OpenAI-Project": omit}
        return {"base_url": f"{self._base()}/v1", "api_key": self.key, **self._common(own, variables, options)}

    def anthropic(
        self, omit: object, variables: Mapping[str, str] | None, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the arguments of `anthropic.Anthropic`; `omit` is what leaves a header out."""
        own = {"X-Api-Key": omit}
        return {"base_url": self._base(), "auth_token": self.key, **self._common(own, variables, options)}

    def _base(self) -> str:
        agent = f"@{url_part(self.agent_id)}:{url_part(self.label)}"
        return f"{self.url}/api/agents/model-calls/{url_part(self.provider)}/{agent}"

    def _common(
        self, own: Mapping[str, object], variables: Mapping[str, str] | None, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        query: dict[str, object] = {"workspace_id": self.workspace} if self.workspace else {}
        # The SDKs take credentials and headers from the environment, which are those for the provider itself.
        headers = {"Authorization": f"Bearer {self.key}", **own}
        if variables:
            headers["Agent-Variables"] = json.dumps(dict(variables))
        merged: dict[str, Any] = {
            "default_query": {**query, **(options.get("default_query") or {})},
            "default_headers": {**headers, **(options.get("default_headers") or {})},
        }
        return {**options, **merged}
