"""Renders the chart: `chart.py STORE` prints the manifests of `packaging/kubernetes` for a store."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml
from go_template import Templates

ROOT = Path(__file__).parents[2]
CHART = ROOT / "packaging/helm/agentcfg"
STORES = ["embedded", "postgresql"]
HEADER = """# The server with its store {where}. Made of packaging/helm/agentcfg by scripts/manifests.sh; do not edit.
# It needs the Secrets agentcfg and agentcfg-tls: see docs/packages.md.
"""
WHERE = {"embedded": "in a volume of the pod", "postgresql": "in PostgreSQL"}


def render(**values: Any) -> str:
    """Return the manifests for these values, in the order of Helm's file names."""
    about = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    given = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    for name in values:
        assert name in given, name
    data = {
        "Values": {**given, **values},
        "Chart": {"AppVersion": about["appVersion"], "Name": about["name"]},
        "Release": {"Name": "agentcfg"},
    }
    templates = Templates((CHART / "templates/_helpers.tpl").read_text(encoding="utf-8"))
    files = sorted((CHART / "templates").glob("*.yaml"))
    made = [templates.render(path.read_text(encoding="utf-8"), data).strip("\n") for path in files]
    return "\n---\n".join(text for text in made if text) + "\n"


def manifests(store: str) -> str:
    """Return the content of a file of `packaging/kubernetes`."""
    return HEADER.format(where=WHERE[store]) + render(store=store)


if __name__ == "__main__":
    print(manifests(sys.argv[1]), end="")
