"""A provider of models that answers what it was asked as."""

from __future__ import annotations

import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


class Provider:
    """Speaks just so much of the APIs of OpenAI and Anthropic as their clients need, while its thread runs."""

    def __init__(self) -> None:
        self.calls: queue.Queue[tuple[str, dict[str, Any]]] = queue.Queue()
        self.headers: list[str] = []
        """The headers of all calls, as text."""
        calls, headers = self.calls, self.headers

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                headers.append(str(self.headers))
                calls.put((self.path, body))
                kind, content = answer(self.path, body)
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing."""

        self._http = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


def answer(path: str, body: dict[str, Any]) -> tuple[str, bytes]:
    """Return the type and the content of an answer."""
    model = body["model"]
    if "messages" not in path:
        return "application/json", json.dumps((response if "responses" in path else chat)(model)).encode()
    if not body.get("stream"):
        return "application/json", json.dumps(message(model)).encode()
    events = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in message_events(model)]
    return "text/event-stream", "".join(events).encode()


def chat(model: str) -> dict[str, Any]:
    answer = {"role": "assistant", "content": f"Hello from {model}"}
    choices = [{"index": 0, "finish_reason": "stop", "message": answer}]
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": model, "choices": choices, "usage": usage}


def response(model: str) -> dict[str, Any]:
    text: dict[str, Any] = {"type": "output_text", "text": f"Hello from {model}", "annotations": []}
    output = {"id": "o", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "model": model,
        "status": "completed",
        "output": [output],
        "usage": usage,
    }


def message(model: str) -> dict[str, Any]:
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": f"Hello from {model}"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def message_events(model: str) -> list[dict[str, Any]]:
    """Return a message as the events of its stream."""
    whole = message(model)
    [block] = whole["content"]
    return [
        {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": block["text"]}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"]}, "usage": whole["usage"]},
        {"type": "message_stop"},
    ]
