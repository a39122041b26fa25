"""A provider of models that answers what it was asked as."""

from __future__ import annotations

import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


class Provider:
    """Speaks just so much of the APIs of OpenAI and Anthropic as the SDKs need, while its thread runs."""

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
                content = json.dumps((message if "messages" in self.path else chat)(body["model"])).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
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


def chat(model: str) -> dict[str, Any]:
    answer = {"role": "assistant", "content": f"Hello from {model}"}
    choices = [{"index": 0, "finish_reason": "stop", "message": answer}]
    return {"id": "c", "object": "chat.completion", "created": 1, "model": model, "choices": choices}


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
