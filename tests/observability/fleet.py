"""A server with all metrics in use, and a Prometheus that scrapes it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

BINARY = os.environ["AGENTCFG_TEST_BINARY"]
# AGENTCFG_TEST_BINARY would be an unknown setting of the server.
PATH = {"PATH": os.environ["PATH"]}
PATIENCE = 30.0
# What a provider reports: the input has cached tokens, the output has reasoning.
OPENAI = {
    "prompt_tokens": 1200,
    "completion_tokens": 340,
    "total_tokens": 1540,
    "prompt_tokens_details": {"cached_tokens": 1000},
    "completion_tokens_details": {"reasoning_tokens": 300},
}
ANTHROPIC = {
    "input_tokens": 100,
    "cache_read_input_tokens": 50,
    "cache_creation_input_tokens": 70,
    "output_tokens": 30,
}


def eventually(what: str, is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, f"{what}: not within {PATIENCE} s"
        time.sleep(0.1)


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Outside(BaseHTTPRequestHandler):
    """The providers, and a receiver of webhooks. A model named `broken` is one that the provider cannot serve."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer a call."""
        body = self.rfile.read(int(self.headers["content-length"]))
        status, answer = 200, {"usage": ANTHROPIC if "messages" in self.path else OPENAI}
        if b'"broken"' in body:
            status, answer = 503, {}
        if "webhook" in self.path and b'"agent.deleted"' in body:
            status = 500
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@contextlib.contextmanager
def outside() -> Iterator[str]:
    """Run the providers and the receiver."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Outside) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


class Fleet:
    """One server with TLS, an agent, a webhook and a stream of changes."""

    def __init__(self, folder: Path, others: str) -> None:
        """Start it."""
        self.folder = folder
        self.certificate()
        self.trusted = ssl.create_default_context(cafile=folder / "tls.crt")
        metrics = free_port()
        self.metrics = f"127.0.0.1:{metrics}"
        settings = {
            "data": folder / "data",
            "listen": "127.0.0.1:0",
            "metrics_listen": self.metrics,
            "tls_cert": folder / "tls.crt",
            "tls_key": folder / "tls.key",
            "openai_base_url": f"http://{others}",
            "anthropic_base_url": f"http://{others}",
            "openai_api_key": "unused",
            "anthropic_api_key": "unused",
            "managed_models": "any",
            "webhook_allowed_hosts": others,
        }
        environment = {f"AGENTCFG_{key.upper()}": str(value) for key, value in settings.items()} | PATH
        self.log = folder / "log"
        self.process = subprocess.Popen(
            [BINARY, "serve"], stdout=subprocess.PIPE, stderr=self.log.open("w"), text=True, env=environment
        )
        self.url, self.token, self.workspace = "", "", ""

    def begin(self, others: str) -> None:
        """Wait until it serves, and make a workspace with a webhook."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("listening on https://"), self.log.read_text()
        self.url = line.split()[-1]
        token = [BINARY, "token", "--user", "ada", "--data", self.folder / "data"]
        self.token = subprocess.run(token, capture_output=True, text=True, check=True, env=PATH).stdout.strip()
        self.workspace = self.call("POST", "/api/workspaces", {"name": "Studio"})["id"]
        self.make("/api/webhooks", url=f"http://{others}/webhook")

    def at(self, path: str, **query: str) -> str:
        """Return a target in the workspace."""
        return f"{path}?{urllib.parse.urlencode({'workspace_id': self.workspace, **query})}"

    def request(self, method: str, target: str, body: Any = None, accept: str = "*/*") -> urllib.request.Request:
        """Return a request of the owner."""
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json", "accept": accept}
        content = None if body is None else json.dumps(body).encode()
        return urllib.request.Request(self.url + target, content, headers, method=method)

    def call(self, method: str, target: str, body: Any = None) -> Any:
        """Send a request of the owner, and return what is answered."""
        request = self.request(method, target, body)
        try:
            with urllib.request.urlopen(request, context=self.trusted, timeout=PATIENCE) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {target}: {error.code} {error.read()!r}") from error
        return json.loads(text) if text else None

    def make(self, path: str, **fields: str) -> None:
        """Make something in the workspace."""
        self.call("POST", path, {"workspace_id": self.workspace, **fields})

    def model_call(self, path: str, body: Any) -> int:
        """Send a model call, and return its status."""
        target = self.at(f"/api/agents/model-calls/{path}", agent_id="writer")
        request = self.request("POST", target, body)
        try:
            with urllib.request.urlopen(request, context=self.trusted, timeout=PATIENCE) as answer:
                answer.read()
                return answer.status
        except urllib.error.HTTPError as error:
            error.read()
            return error.code

    def certificate(self) -> None:
        """Write a new certificate with its key."""
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "90"]
        subject = ["-subj", "/CN=agentcfg", "-addext", "subjectAltName=IP:127.0.0.1"]
        files = ["-keyout", self.folder / "new.key", "-out", self.folder / "new.crt"]
        subprocess.run(["openssl", "req", "-x509", *key, *subject, *files], check=True, capture_output=True)
        (self.folder / "new.key").chmod(0o600)
        for name in ("key", "crt"):
            (self.folder / f"new.{name}").rename(self.folder / f"tls.{name}")

    def scrape(self, accept: str = "*/*") -> str:
        """Return the metrics."""
        request = urllib.request.Request(f"http://{self.metrics}/metrics", headers={"accept": accept})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.read().decode()

    def use(self) -> None:
        """Use what has metrics."""
        target = self.at("/api/changes", after="now")
        request = self.request("GET", target, accept="text/event-stream")
        with urllib.request.urlopen(request, context=self.trusted, timeout=PATIENCE):
            self.make("/api/agents/configs", agent_id="writer", display_name="Writer")
            self.read_and_call()
            eventually("an event", lambda: "agentcfg_stream_events_total 0\n" not in self.scrape())

    def read_and_call(self) -> None:
        """Read agents, and call models."""
        for _ in range(3):
            self.call("GET", self.at("/api/agents/configs"))
            assert self.model_call("openai/v1/chat/completions", {"model": "gpt-5.5", "messages": []}) == 200
            assert self.model_call("anthropic/v1/messages", {"model": "claude-opus-5-5", "messages": []}) == 200
            assert self.model_call("openai/v1/chat/completions", {"model": "broken", "messages": []}) == 503

    def renew(self) -> None:
        """Put a certificate in place that has another key, and then a good one."""
        good = (self.folder / "tls.crt").read_bytes()
        self.certificate()
        (self.folder / "tls.crt").write_bytes(good)
        eventually("a refused certificate", lambda: 'renewals_total{result="refused"} ' in self.scrape())
        self.certificate()
        eventually("a new certificate", lambda: 'renewals_total{result="taken"} ' in self.scrape())
        self.trusted = ssl.create_default_context(cafile=self.folder / "tls.crt")

    def stop(self) -> None:
        """Stop the server."""
        self.process.terminate()
        assert self.process.wait(PATIENCE) == 0, self.log.read_text()


class Prometheus:
    """A Prometheus that scrapes a server each second and evaluates the alerts."""

    def __init__(self, folder: Path, target: str, rules: Path) -> None:
        """Start it."""
        program = shutil.which("prometheus")
        assert program, "prometheus is not installed"
        self.url = f"http://127.0.0.1:{free_port()}"
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules)],
            "scrape_configs": [{"job_name": "agentcfg", "static_configs": [{"targets": [target]}]}],
        }
        # JSON is YAML.
        (folder / "prometheus.yml").write_text(json.dumps(config))
        self.log = folder / "prometheus.log"
        self.process = subprocess.Popen(
            [
                program,
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'series'}",
                f"--web.listen-address={self.url.removeprefix('http://')}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=self.log.open("w"),
        )
        eventually("Prometheus has scraped", lambda: bool(self.attempt('up{job="agentcfg"} == 1')))

    def get(self, path: str, **query: str) -> Any:
        """Return what its API answers."""
        address = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{query}: {error.read().decode()}") from error

    def query(self, expression: str) -> list[Any]:
        """Return the series of an expression now."""
        return self.get("query", query=expression)["result"]

    def attempt(self, expression: str) -> list[Any]:
        """Return the series of an expression, or none while Prometheus starts."""
        assert self.process.poll() is None, self.log.read_text()
        with contextlib.suppress(urllib.error.URLError, ConnectionError, AssertionError):
            return self.query(expression)
        return []

    def stop(self) -> None:
        """Stop it."""
        self.process.kill()
        self.process.wait(PATIENCE)
