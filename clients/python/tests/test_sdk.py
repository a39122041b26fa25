"""Model calls through the SDKs of the providers, the real server, and a provider of the test."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import openai
import pytest

from agentcfg import AgentCfg, AsyncAgentCfg
from conftest import Server

CHAT = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-5.5",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hello"}}],
}
MESSAGE = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-5-5",
    "content": [{"type": "text", "text": "Hello"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


@pytest.fixture
def provider() -> Iterator[tuple[str, queue.Queue[tuple[str, dict[str, Any]]]]]:
    """The URL of a provider, and the paths and bodies of the calls that it got."""
    calls: queue.Queue[tuple[str, dict[str, Any]]] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            calls.put((self.path, body))
            content = json.dumps(MESSAGE if "messages" in self.path else CHAT).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}", calls
        http.shutdown()
        thread.join()


def test_calls_are_those_of_the_released_agent(
    provider: tuple[str, queue.Queue[tuple[str, dict[str, Any]]]], tmp_path: Path
) -> None:
    url, calls = provider
    server = Server(tmp_path, openai_base_url=url, anthropic_base_url=url, openai_api_key="o", anthropic_api_key="a")
    try:
        studio = server.studio()
        definition: Any = {"variables": {"product": {}}, "model_settings": {"temperature": 0.25}}
        studio.agent("support", model="gpt-5.5", persona_prompt="Help with {{product}}.", definition=definition)
        studio.edit("support", persona_prompt="A draft.")
        studio.agent("poet_1", model="claude-sonnet-5-5", persona_prompt="You rhyme.")
        key = studio.key("write")
        question: Any = [{"role": "user", "content": "Hi"}]
        with AgentCfg(server.url, key, workspace=studio.workspace) as cfg:
            client = cfg.openai("support", variables={"product": "Böards"}, max_retries=0)
            answer = client.chat.completions.create(model="", messages=question)
            assert answer.choices[0].message.content == "Hello"
            path, body = calls.get_nowait()
            assert (path, body["model"], body["temperature"]) == ("/v1/chat/completions", "gpt-5.5", 0.25)
            assert body["messages"][0] == {"role": "system", "content": "Help with Böards."}
            message = cfg.anthropic("poet_1").messages.create(model="", max_tokens=9, messages=question)
            assert message.model == "claude-sonnet-5-5"
            path, body = calls.get_nowait()
            assert (path, body["model"], body["system"]) == ("/v1/messages", "claude-sonnet-5-5", "You rhyme.")
            with pytest.raises(openai.NotFoundError, match="nothing"):
                cfg.openai("nothing").chat.completions.create(model="", messages=question)

        async def run() -> None:
            async with AsyncAgentCfg(server.url, key) as cfg:
                await cfg.openai("support").chat.completions.create(model="", messages=question)
                await cfg.anthropic("poet_1").messages.create(model="", max_tokens=9, messages=question)

        asyncio.run(run())
        assert calls.get_nowait()[1]["messages"][0]["content"] == "Help with ."
        assert calls.get_nowait()[1]["system"] == "You rhyme."
    finally:
        server.kill()
