"""The file that keeps what a label released last, for a start without the server. The Rust client reads it too."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import types
from .snapshot import Position

FORMAT = 1


@dataclass(frozen=True)
class Saved:
    """The content of the file."""

    workspace_id: str
    label: str
    tag: str
    cursor: str
    agents: list[types.ReleasedAgent]
    saved_at: float
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
            found = Saved(
                workspace_id=saved["workspace_id"],
                label=saved["label"],
                tag=saved["tag"],
                cursor=saved["cursor"],
                agents=saved["agents"],
                saved_at=float(saved.get("saved_at") or self._path.stat().st_mtime),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"{self._path} is no cache file of agentcfg: {error!r}") from error
        except json.JSONDecodeError as error:
            raise ValueError(f"{self._path} is no JSON: {error}") from error
        if found.label != self._label or self._workspace_id not in (None, found.workspace_id):
            raise ValueError(f"{self._path} is that of the label {found.label!r} of workspace {found.workspace_id}")
        return found

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
            "saved_at": saved.saved_at,
            "agents": saved.agents,
        }
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
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
