"""The cache file by itself."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentcfg._cache import CacheFile, Saved, sealed

SAVED = Saved(workspace_id="w", label="production", tag="t", cursor="e-c5", agents=[], confirmed_at=100.0)


def text_of(content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def test_a_file_that_was_altered_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "cache.json"
    file = CacheFile(path, None, "production")
    file.save(SAVED)
    whole = path.read_bytes()
    without = json.loads(whole)
    del without["crc32"]
    for text in (whole.replace(b"e-c5", b"e-c6"), whole.replace(b'"t"', b'"u"'), whole + b"\n", text_of(without)):
        path.write_bytes(text)
        with pytest.raises(ValueError, match="is damaged"):
            file.load()
        file.save(SAVED)
        assert path.read_bytes() == whole


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
    file.save(replace(SAVED, cursor="e-c4", confirmed_at=200.0))
    assert file.load() == SAVED
    for newer in (replace(SAVED, confirmed_at=200.0), replace(SAVED, cursor="e-c6"), replace(SAVED, cursor="f-c1")):
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


def test_the_clients_share_the_form_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "cache.json"
    file = CacheFile(path, None, "production")
    file.save(SAVED)
    content = json.loads(path.read_text())
    # The Rust client reads a tag without quotes; the TypeScript client notes the time so.
    assert (content["tag"], content["confirmed_at"]) == ("t", "1970-01-01T00:01:40.000Z")
    assert content.pop("crc32") and path.read_bytes() == sealed(text_of(content)), "the others compute it so"
    assert sealed(b'{"a":1}') == b'{"crc32":"94da56a3","a":1}'
    path.write_bytes(sealed(text_of({**content, "confirmed_at": "1970-01-01T00:01:41.500Z"})))
    assert file.load() == replace(SAVED, confirmed_at=101.5)
    for confirmed_at in (None, "soon", 7):
        path.write_bytes(sealed(text_of({**content, "confirmed_at": confirmed_at})))
        os.utime(path, (300.0, 300.0))
        assert file.load() == replace(SAVED, confirmed_at=300.0)


@pytest.mark.parametrize("name", ["workspace_id", "label", "tag", "cursor", "agents"])
@pytest.mark.parametrize("value", [1, None, {}])
def test_a_file_with_values_of_other_types_is_replaced(tmp_path: Path, name: str, value: Any) -> None:
    path = tmp_path / "cache.json"
    file = CacheFile(path, None, "production")
    file.save(SAVED)
    path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))
    with pytest.raises(ValueError, match=f"no cache file of agentcfg.*{name} is a"):
        file.load()
    file.save(SAVED)
    assert file.load() == SAVED


def test_a_file_whose_tag_no_header_can_hold_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "cache.json"
    file = CacheFile(path, None, "production")
    for tag in ("x\ny", "\u00e9", '"x"'):
        file.save(SAVED)
        path.write_text(json.dumps({**json.loads(path.read_text()), "tag": tag}))
        with pytest.raises(ValueError, match="tag is not one of the server"):
            file.load()


def test_a_file_that_is_no_text_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "cache.json"
    path.write_bytes(b'{"format": "\xff"}')
    file = CacheFile(path, None, "production")
    with pytest.raises(ValueError, match="is no JSON"):
        file.load()
    file.save(SAVED)
    assert file.load() == SAVED
