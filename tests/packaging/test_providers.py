"""The settings of `docs/providers.md` start a server."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import chart

PAGE = (chart.ROOT / "docs/providers.md").read_text(encoding="utf-8")


def test_the_documented_providers_are_accepted(tmp_path: Path) -> None:
    blocks: list[str] = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    config = tmp_path / "config.toml"
    config.write_text("\n".join(blocks), encoding="utf-8")
    config.chmod(0o600)
    settings = tomllib.loads(config.read_text(encoding="utf-8"))
    ids = [provider["id"] for provider in settings["providers"]]
    assert set(settings["provider_api_keys"]) <= set(ids)
    assert {model["provider"] for model in settings["models"]} <= set(ids)
    key = tmp_path / "azure-key"
    key.write_text("unused")
    key.chmod(0o600)
    variable = re.search(r"^(AGENTCFG_PROVIDER_API_KEY_\w+_FILE)=", PAGE, re.MULTILINE)
    assert variable
    command = [
        os.environ["AGENTCFG_TEST_BINARY"],
        *("serve", "--config", config, "--data", tmp_path / "data", "--listen", "127.0.0.1:0"),
    ]
    environment = {"PATH": os.environ["PATH"], variable[1]: str(key)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        process.kill()
        assert line.startswith("listening on http://"), process.stderr.read()
