"""The file that keeps what a label released last, for a start without the server. The other clients read it too."""

from __future__ import annotations

import json
import os
import re
import tempfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from . import types
from .snapshot import Position

FORMAT = 1
# What the file begins with: a checksum of all that follows, so that a file that was damaged or edited is not served.
_HEAD = '{"crc32":"%08x",'
_HEAD_BYTES = 20
_TAG = re.compile(r"[!#-~]*")


@dataclass(frozen=True)
class Saved:
    """The content of the file."""

    workspace_id: str
    label: str
    tag: str
    """The entity tag without its quotes; empty where there is none."""
    cursor: str
    agents: list[types.ReleasedAgent]
    confirmed_at: float
    """When the server last confirmed the state, in seconds since 1970."""


class CacheFile:
    """A file for one label of one workspace."""

    def __init__(self, path: str | os.PathLike[str], workspace_id: str | None, label: str) -> None:
        """Name the file, which need not exist. Without a workspace, that of any is read."""
        self._path = Path(path)
        self._workspace_id = workspace_id
        self._label = label

    def load(self) -> Saved | None:
        """Read the file; `None` where there is none. `ValueError` says why it is not usable."""
        try:
            text = self._path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            saved: dict[str, Any] = json.loads(text)
            if saved["format"] != FORMAT:
                raise ValueError(f"{self._path} is that of another release")
            texts = {name: _of_type(saved, name, str) for name in ("workspace_id", "label", "tag", "cursor")}
            found = Saved(**texts, agents=_of_type(saved, "agents", list), confirmed_at=self._confirmed_at(saved))
            if not _TAG.fullmatch(found.tag):
                raise TypeError("tag is not one of the server")
            for row in found.agents:
                _check_row(row)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{self._path} is no cache file of agentcfg: {error!r}") from error
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(f"{self._path} is no JSON: {error}") from error
        if found.label != self._label or self._workspace_id not in (None, found.workspace_id):
            raise ValueError(f"{self._path} is that of the label {found.label!r} of workspace {found.workspace_id}")
        if text != sealed(b"{" + text[_HEAD_BYTES:]):
            raise ValueError(f"{self._path} is damaged: it is not as it was written")
        return found

    def _confirmed_at(self, saved: Mapping[str, Any]) -> float:
        """Return when the state was confirmed; a client that does not note it has written the file then."""
        try:
            return datetime.fromisoformat(saved["confirmed_at"].replace("Z", "+00:00")).timestamp()
        except (KeyError, AttributeError, ValueError, OverflowError, OSError):
            return self._path.stat().st_mtime

    def save(self, saved: Saved) -> None:
        """Replace the file in one step: a reader finds the old content or the new one. Its owner alone can read it.

        Processes share a file: one that is behind leaves the state of another one in it.
        """
        try:
            other = self.load()
        except ValueError:
            other = None
        if other is not None and Position.of(saved.cursor).is_before(Position.of(other.cursor)):
            return
        content = {
            "format": FORMAT,
            "workspace_id": saved.workspace_id,
            "label": saved.label,
            "tag": saved.tag,
            "cursor": saved.cursor,
            "confirmed_at": _rfc3339(saved.confirmed_at),
            "agents": saved.agents,
        }
        text = sealed(json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode())
        handle, temporary = tempfile.mkstemp(prefix=f"{self._path.name}.", suffix=".tmp", dir=self._path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(self._path)
        except BaseException:
            with suppress(OSError):
                Path(temporary).unlink()
            raise


def sealed(text: bytes) -> bytes:
    """Return the text of an object with a checksum of it as its first member."""
    return (_HEAD % zlib.crc32(text[1:])).encode() + text[1:]


def _of_type(saved: Any, name: str | int, kind: type | tuple[type, ...]) -> Any:
    value = saved[name]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{name} is a {type(value).__name__}")
    return value


def _check_row(row: Mapping[str, Any]) -> None:
    """Check the types of an agent's fields: each would fail where a program uses it, and not here."""
    for name in ("agent_id", "label", "updated_at"):
        _of_type(row, name, str)
    _of_type(row, "version", int)
    config: dict[str, Any] = _of_type(row, "config", dict)
    for name in ("display_name", "agent_type"):
        _of_type(config, name, str)
    for name in ("role", "description", "model", "color", "persona_prompt"):
        _of_type({name: config.get(name)}, name, (str, type(None)))
    for number, _ in enumerate(_of_type(config, "capabilities", list)):
        _of_type(config["capabilities"], number, str)
    for name in _of_type(config, "parameters", dict):
        _of_type(config["parameters"], name, (int, float))
    definition: dict[str, Any] = _of_type({"definition": config.get("definition") or {}}, "definition", dict)
    for name, kind in (("variables", dict), ("model_settings", dict), ("tools", list)):
        _of_type({name: definition.get(name) or kind()}, name, kind)
    variables: dict[str, Any] = definition.get("variables") or {}
    for name in variables:
        _of_type(variables, name, dict)


def _rfc3339(moment: float) -> str:
    return datetime.fromtimestamp(moment, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
