"""The cache file by itself."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from agentcfg._cache import CacheFile, Saved

SAVED = Saved(workspace_id="w", label="production", tag='"t"', cursor="e-c5", agents=[], saved_at=100.0)


def test_it_reads_back_as_written(tmp_path: Path) -> None:
    file = CacheFile(tmp_path / "é.json", None, "production")
    assert file.load() is None
    file.save(SAVED)
    assert file.load() == SAVED
    assert CacheFile(tmp_path / "é.json", "w", "production").load() == SAVED
    with pytest.raises(ValueError, match="label 'production' of workspace w"):
        CacheFile(tmp_path / "é.json", "another", "production").load()


def test_a_process_that_is_behind_replaces_nothing(tmp_path: Path) -> None:
    file = CacheFile(tmp_path / "cache.json", None, "production")
    file.save(SAVED)
    file.save(replace(SAVED, cursor="e-c4", saved_at=200.0))
    assert file.load() == SAVED
    for newer in (replace(SAVED, saved_at=200.0), replace(SAVED, cursor="e-c6"), replace(SAVED, cursor="f-c1")):
        file.save(newer)
        assert file.load() == newer


def test_a_file_of_something_else_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "cache.json").write_text("something else")
    file = CacheFile(tmp_path / "cache.json", None, "production")
    file.save(SAVED)
    assert file.load() == SAVED


def test_readers_find_whole_files(tmp_path: Path) -> None:
    file = CacheFile(tmp_path / "cache.json", None, "production")
    file.save(SAVED)
    ended = threading.Event()

    def write() -> None:
        for revision in range(6, 60):
            file.save(replace(SAVED, cursor=f"e-c{revision}", tag="x" * 10_000))
        ended.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not ended.is_set():
        assert file.load() is not None
    writer.join()
    assert [path.name for path in tmp_path.iterdir()] == ["cache.json"]


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "cache.json").mkdir()
    with pytest.raises(OSError):
        CacheFile(tmp_path / "cache.json", None, "production").save(SAVED)
    assert [path.name for path in tmp_path.iterdir()] == ["cache.json"]
