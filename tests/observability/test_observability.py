"""Alerts, dashboard and documents name metrics that the server has."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fleet import Fleet, Prometheus, eventually, outside
from metrics_text import Exposed, grouping, selectors

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "packaging/observability"
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))
PANELS: list[Any] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
GROUPS = yaml.safe_load((FOLDER / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
RULES: dict[str, Any] = {rule["alert"]: rule for group in GROUPS for rule in group["rules"]}
OPERATIONS = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
# What a server on PostgreSQL has besides. The server of these tests has the embedded store; the tests of that database compare
# these names with its answer.
ON_POSTGRESQL = (
    "agentcfg_database_connections_max",
    "agentcfg_database_connections_open",
    "agentcfg_database_connections_used",
    "agentcfg_database_connections_waiting",
)
# What Grafana puts in for variables. An interval that is longer than the test has the whole test in it.
VARIABLES = {"$__rate_interval": "1m", "$job": ".*", "$instance": ".*", "$provider": ".*", "$model": ".*"}


def filled_in(expression: str) -> str:
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression, expression
    return expression


def queries() -> list[tuple[str, str, str]]:
    """All queries of the dashboard: title, expression and legend."""
    return [
        (panel["title"], filled_in(target["expr"]), target["legendFormat"])
        for panel in PANELS
        for target in panel["targets"]
    ]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with outside() as others:
        fleet = Fleet(tmp_path_factory.mktemp("fleet"), others)
        try:
            fleet.begin(others)
            fleet.use()
            fleet.renew()
            yield fleet
            fleet.stop()
        finally:
            fleet.process.kill()


@pytest.fixture(scope="module")
def exposed(fleet: Fleet) -> Exposed:
    others = (f"# HELP {name} Elsewhere\n# TYPE {name} gauge\n{name} 1\n" for name in ON_POSTGRESQL)
    return Exposed.of(fleet.scrape() + "".join(others))


@pytest.fixture(scope="module")
def prometheus(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    prometheus = Prometheus(tmp_path_factory.mktemp("prometheus"), fleet.metrics, FOLDER / "alerts.yaml")
    try:
        fleet.read_and_call()
        # Rates need two samples.
        eventually("two scrapes", lambda: prometheus.attempt("count_over_time(agentcfg_streams[1m]) > 2") != [])
        yield prometheus
    finally:
        prometheus.stop()


def test_promtool_finds_nothing_in_the_metrics(fleet: Fleet) -> None:
    done = subprocess.run(["promtool", "check", "metrics"], input=fleet.scrape(), capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_two_formats_have_the_same_samples(fleet: Fleet) -> None:
    texts = [fleet.scrape("application/openmetrics-text"), fleet.scrape()]
    names = [Exposed.of(text).labels for text in texts]
    assert names[0] == names[1]
    assert texts[0].endswith("# EOF\n") and "# EOF" not in texts[1]


def test_alerts_name_what_is_exposed(exposed: Exposed) -> None:
    faults = {alert: exposed.faults(rule["expr"]) for alert, rule in RULES.items()}
    assert {alert: found for alert, found in faults.items() if found} == {}


def test_panels_name_what_is_exposed(exposed: Exposed) -> None:
    for title, expression, legend in queries():
        assert exposed.faults(expression) == [], title
        labels = [exposed.labels.get(name, set()) for name, _ in selectors(expression)]
        shown = grouping(expression) or {"job", "instance"}.union(*labels)
        assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= shown, title


def test_what_is_not_exposed_is_found(exposed: Exposed) -> None:
    assert exposed.faults("agentcfg_nothing > 1") == ["no metric agentcfg_nothing"]
    assert exposed.faults('agentcfg_streams{colour="red"}') == ["no label colour of agentcfg_streams"]
    assert exposed.faults("sum by (le, job) (agentcfg_streams)") == ["no label le to group by"]


def test_variables_name_what_is_exposed(exposed: Exposed) -> None:
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] != "query":
            continue
        found = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
        assert found, variable
        [(name, _)] = selectors(found[1])
        assert exposed.faults(filled_in(found[1])) == [] and found[2] in exposed.labels[name] | {"job", "instance"}


def test_panels_show_something(prometheus: Prometheus) -> None:
    for title, expression, _ in queries():
        eventually(f"{title}: {expression}", lambda query=expression: prometheus.query(query) != [])


def test_prometheus_evaluates_all_alerts_and_none_fires(prometheus: Prometheus) -> None:
    def rules() -> list[Any]:
        return [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]

    eventually("all rules are evaluated", lambda: all(rule["health"] != "unknown" for rule in rules()))
    assert {rule["name"]: rule.get("lastError", "") for rule in rules() if rule["health"] != "ok"} == {}
    assert {rule["name"] for rule in rules()} == set(RULES)
    assert [rule["name"] for rule in rules() if rule["state"] == "firing"] == []


@pytest.mark.parametrize("page", ["operations", "packages"])
def test_the_documented_configuration_of_prometheus_is_valid(page: str, tmp_path: Path) -> None:
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    [config] = re.findall(r"^```yaml\n(# prometheus\.yml\n.*?)^```$", text, re.MULTILINE | re.DOTALL)
    config = config.replace("/etc/prometheus/agentcfg", str(FOLDER))
    # Debian's Prometheus is built without Kubernetes.
    config = config.replace("kubernetes_sd_configs: [{ role: pod }]", "static_configs: [{ targets: [pod] }]")
    (tmp_path / "prometheus.yml").write_text(config)
    command = ["promtool", "check", "config", tmp_path / "prometheus.yml"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_tests_of_both_kinds() -> None:
    files = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.test.yaml")]
    checks = [check for file in files for case in file["tests"] for check in case["alert_rule_test"]]
    for is_expected in (True, False):
        assert {check["alertname"] for check in checks if bool(check.get("exp_alerts")) == is_expected} == set(RULES)


def test_each_alert_is_in_the_table_of_the_documentation() -> None:
    assert set(re.findall(r"`(Agentcfg\w+)`", OPERATIONS)) == set(RULES)


def test_the_documentation_names_metrics_that_exist(exposed: Exposed) -> None:
    for page in ("operations", "usage", "webhooks", "etcd", "faults"):
        text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
        for name in set(re.findall(r"`(agentcfg_[a-z_]+)", text)) - {"agentcfg_server"}:
            family = name in exposed.described or exposed.has(name)
            assert family, f"docs/{page}.md: {name}"


def test_limits_in_the_alerts_are_the_default_ones() -> None:
    defaults = (ROOT / "agentcfg-server/src/process/config.default.toml").read_text(encoding="utf-8")
    for alert, setting in (
        ("AgentcfgConnectionsNearLimit", "max_connections"),
        ("AgentcfgStreamsNearLimit", "max_streams"),
    ):
        found = re.search(rf"^{setting} = (\d+)$", defaults, re.MULTILINE)
        assert found and RULES[alert]["expr"].endswith(f" {found[1]}"), alert


def test_the_panels_fit_together() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({panel["title"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {(x + place["x"], y + place["y"]) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken and place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells
    assert all(panel["datasource"]["uid"] == "${datasource}" for panel in PANELS)
