"""The settings with which the SDKs of the providers call models through the server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote


@dataclass(frozen=True)
class ModelCalls:
    """Where the model calls of one agent go, and as whom."""

    url: str
    key: str
    agent_id: str
    label: str
    workspace: str | None
    provider: str

    def openai(self, variables: Mapping[str, str] | None, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of `openai.OpenAI`."""
        return {"base_url": f"{self._base()}/v1", "api_key": self.key, **self._common(variables, options)}

    def anthropic(self, variables: Mapping[str, str] | None, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of `anthropic.Anthropic`."""
        return {
            "base_url": self._base(),
            "auth_token": self.key,
            **self._common(variables, options),
        }

    def _base(self) -> str:
        agent = f"@{quote(self.agent_id, safe='')}:{quote(self.label, safe='')}"
        return f"{self.url}/api/agents/model-calls/{quote(self.provider, safe='')}/{agent}"

    def _common(self, variables: Mapping[str, str] | None, options: Mapping[str, Any]) -> dict[str, Any]:
        query: dict[str, object] = {"workspace_id": self.workspace} if self.workspace else {}
        headers = {"Agent-Variables": json.dumps(dict(variables))} if variables else {}
        merged: dict[str, Any] = {
            "default_query": {**query, **(options.get("default_query") or {})},
            "default_headers": {**headers, **(options.get("default_headers") or {})},
        }
        return {**options, **merged}
