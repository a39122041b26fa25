"""What the manifests say is what the server, its image and Kubernetes have."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chart
import jsonschema
import kubernetes_validate
import pytest
import yaml
from go_template import Stop, Templates

ROOT = chart.ROOT
BINARY = Path(os.environ["AGENTCFG_TEST_BINARY"])
# From the oldest release that the chart names on.
RELEASES = ["1.25", "1.30", "1.37"]
VARIANTS: list[dict[str, Any]] = [
    {"store": "embedded"},
    {"store": "postgresql", "replicas": 3},
    {"store": "embedded", "tls": "", "publicUrl": "https://agents.example.com"},
    {"store": "embedded", "storage": {"size": "1Ti", "class": "fast"}, "settings": {}},
    {
        "store": "postgresql",
        "settings": {"log": "debug", "cors_origins": "https://a.example.com,https://b.example.com"},
        "networkPolicy": {
            "enabled": True,
            "from": [{"podSelector": {}}],
            "metricsFrom": [{"podSelector": {}}],
            "egressPorts": [443],
        },
    },
    {
        "store": "embedded",
        "image": {
            "repository": "registry.example.com/agentcfg",
            "tag": "0.1.0-1",
            "pullPolicy": "Always",
            "pullSecrets": [{"name": "registry"}],
        },
        "service": {"type": "LoadBalancer", "annotations": {"example.com/internal": "true"}},
        "podAnnotations": {"example.com/team": "agents"},
        "nodeSelector": {"kubernetes.io/arch": "amd64"},
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "networkPolicy": {"enabled": True, "from": [], "metricsFrom": [], "egressPorts": []},
    },
    {"store": "postgresql", "networkPolicy": {"enabled": False}},
]


def documents(text: str) -> list[Any]:
    return list(yaml.safe_load_all(text))


def workload(store: str) -> Any:
    made = documents((ROOT / f"packaging/kubernetes/{store}.yaml").read_text(encoding="utf-8"))
    return next(document for document in made if document["kind"] in ("StatefulSet", "Deployment"))


def version() -> str:
    found = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert found
    return found[1]


@pytest.mark.parametrize("store", chart.STORES)
def test_the_manifests_are_those_of_the_chart(store: str) -> None:
    written = (ROOT / f"packaging/kubernetes/{store}.yaml").read_text(encoding="utf-8")
    assert written == chart.manifests(store), "scripts/manifests.sh generate"


@pytest.mark.parametrize("values", VARIANTS)
def test_kubernetes_knows_all_fields(values: dict[str, Any]) -> None:
    made = documents(chart.render(**values))
    kinds = [document["kind"] for document in made]
    assert ("NetworkPolicy" in kinds) == values.get("networkPolicy", {"enabled": True})["enabled"]
    assert ("StatefulSet" in kinds, "PodDisruptionBudget" in kinds) == (
        values["store"] == "embedded",
        values["store"] != "embedded",
    )
    for document in made:
        for release in RELEASES:
            kubernetes_validate.validate(document, release, strict=True)
    selector = next(document for document in made if document["kind"] == "Service")["spec"]["selector"]
    pods = next(document for document in made if document["kind"] in ("StatefulSet", "Deployment"))
    assert pods["spec"]["template"]["metadata"]["labels"] == selector == pods["spec"]["selector"]["matchLabels"]


def test_a_field_that_kubernetes_does_not_know_is_found() -> None:
    document = workload("embedded")
    document["spec"]["template"]["spec"]["containers"][0]["livenessProbes"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(document, RELEASES[0], strict=True)


def test_an_empty_list_of_the_network_policy_opens_nothing() -> None:
    # In a policy itself, a rule without ports or peers is for all of them.
    closed = {"enabled": True, "from": [], "metricsFrom": [], "egressPorts": []}
    [policy] = [made for made in documents(chart.render(networkPolicy=closed)) if made["kind"] == "NetworkPolicy"]
    assert policy["spec"]["ingress"] == [{"ports": [{"protocol": "TCP", "port": 7420}]}]
    assert policy["spec"]["egress"] == [{"ports": [{"protocol": name, "port": 53} for name in ("UDP", "TCP")]}]
    for made in documents(chart.render(store="postgresql", networkPolicy=closed)):
        if made["kind"] == "NetworkPolicy":
            assert made["spec"]["egress"][1:] == [{"ports": [{"protocol": "TCP", "port": 5432}]}]


def test_helm_refuses_values_that_the_chart_does_not_have() -> None:
    schema = json.loads((chart.CHART / "values.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    defaults = yaml.safe_load((chart.CHART / "values.yaml").read_text(encoding="utf-8"))
    assert set(schema["properties"]) - {"global"} == set(defaults)
    for values in VARIANTS:
        jsonschema.validate({**defaults, **values}, schema)
    for wrong in (
        {"store": "etcd"},
        {"replica": 3},
        {"image": {"name": "agentcfg"}},
        {"publicUrl": "agents.example.com"},
        {"settings": {"LOG": "debug"}},
        {"settings": {"max_answer_mb_in_flight": 1000000}},
        {"storage": {"size": "10"}},
        {"service": {"type": "Ingress"}},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**defaults, **wrong}, schema)


def test_another_store_is_refused() -> None:
    with pytest.raises(Stop, match="embedded or postgresql"):
        chart.render(store="etcd")


def test_templates_with_an_unknown_function_are_refused() -> None:
    with pytest.raises(KeyError):
        Templates().render("{{ lookup .a }}", {"a": 1})


@pytest.mark.parametrize("values", VARIANTS)
def test_helm_renders_the_same(values: dict[str, Any], tmp_path: Path) -> None:
    helm = shutil.which("helm")
    if helm is None:
        pytest.skip("helm is not installed")
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    command = [helm, "template", "agentcfg", chart.CHART, "--values", tmp_path / "values.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    made = [document for document in documents(done.stdout) if document]

    def by_kind(document: Any) -> str:
        return document["kind"]

    assert sorted(made, key=by_kind) == sorted(documents(chart.render(**values)), key=by_kind)


def test_what_the_image_has_is_what_they_name() -> None:
    image = (ROOT / "scripts/package/oci.sh").read_text(encoding="utf-8")
    about = yaml.safe_load((chart.CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert about["version"] == about["appVersion"] == version()
    for store in chart.STORES:
        pod = workload(store)["spec"]["template"]["spec"]
        user = pod["securityContext"]["runAsUser"]
        assert f"user={user}\n" in image and '"Entrypoint":["/usr/bin/agentcfg-server"]' in image
        assert pod["securityContext"]["runAsGroup"] == pod["securityContext"]["fsGroup"] == user
        assert pod["containers"][0]["image"] == f"agentcfg:{version()}"
        data = [mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"] if mount["name"] == "data"]
        assert data == (["/var/lib/agentcfg"] if store == "embedded" else [])
    assert '"Volumes":{"/var/lib/agentcfg":{}}' in image


def test_they_wait_longer_than_the_server_needs_to_stop() -> None:
    defaults = (ROOT / "agentcfg-server/src/process/config.default.toml").read_text(encoding="utf-8")
    found = re.search(r"^shutdown_timeout = (\d+)$", defaults, re.MULTILINE)
    assert found
    for store in chart.STORES:
        assert workload(store)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > int(found[1]) + 10


class Volumes:
    """The files of the volumes, in folders of the test instead of those of the container."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.probes = ""
        secrets, tls = folder / "secrets", folder / "tls"
        for path in (secrets, tls, folder / "data"):
            path.mkdir(mode=0o700)
        for name in ("session-secret", "master-keys"):
            (secrets / name).write_text(os.urandom(32).hex())
        # Nothing listens there.
        (secrets / "database-url").write_text("postgres://agentcfg:x@127.0.0.1:1/agentcfg")
        subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        files = ["-keyout", tls / "tls.key", "-out", tls / "tls.crt"]
        subprocess.run(["openssl", "req", "-x509", *key, *subject, *files], check=True, capture_output=True)

    def environment(self, container: Any) -> dict[str, str]:
        variables = {entry["name"]: entry["value"] for entry in container["env"]}
        for name, value in variables.items():
            for mount, folder in (
                ("/run/secrets/agentcfg", "secrets"),
                ("/run/secrets/tls", "tls"),
                ("/var/lib/agentcfg", "data"),
            ):
                value = value.replace(mount, str(self.folder / folder))
            # Two servers of one test run must not meet.
            variables[name] = re.sub(r"^0\.0\.0\.0:\d+$", "127.0.0.1:0", value)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            probes = f"127.0.0.1:{free.getsockname()[1]}"
        self.probes = f"http://{probes}"
        variables |= {"AGENTCFG_METRICS_LISTEN": probes, "AGENTCFG_SHUTDOWN_DELAY": "0"}
        return {"PATH": os.environ["PATH"], **variables}


@pytest.fixture
def volumes(tmp_path: Path) -> Volumes:
    return Volumes(tmp_path)


@pytest.fixture
def started(volumes: Volumes) -> Iterator[tuple[subprocess.Popen[str], str, Any]]:
    """The server of the embedded store, as its container starts it."""
    container = workload("embedded")["spec"]["template"]["spec"]["containers"][0]
    command = [BINARY, *container["args"]]
    environment = volumes.environment(container)
    with (
        (volumes.folder / "log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening on https://"), (volumes.folder / "log").read_text()
        yield process, line.split()[-1], container
        process.kill()


def test_the_server_starts_and_its_probes_answer(
    started: tuple[subprocess.Popen[str], str, Any], volumes: Volumes
) -> None:
    process, url, container = started
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    listens = {entry["name"]: entry["value"] for entry in container["env"]}
    assert listens["AGENTCFG_LISTEN"].endswith(f":{ports['api']}")
    assert listens["AGENTCFG_METRICS_LISTEN"].endswith(f":{ports['metrics']}")
    # As a kubelet does, which verifies no certificate.
    unverified = ssl._create_unverified_context()
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert asked["port"] == "metrics" and "scheme" not in asked
        with urllib.request.urlopen(volumes.probes + asked["path"], timeout=30) as answer:
            assert answer.status == 200
    with urllib.request.urlopen(url + "/readyz", context=unverified, timeout=30) as answer:
        assert answer.status == 200
    assert int(listens["AGENTCFG_SHUTDOWN_DELAY"]) + 30 < 60
    environment = {"PATH": os.environ["PATH"], "AGENTCFG_METRICS_LISTEN": volumes.probes.removeprefix("http://")}
    asked = subprocess.run([BINARY, "healthcheck"], capture_output=True, text=True, env=environment, timeout=60)
    assert (asked.returncode, asked.stdout) == (0, '{"status":"ready"}\n'), asked.stderr
    assert not (volumes.folder / "data/session.key").exists()
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 0


# Leaves only the data writable, as readOnlyRootFilesystem does. The arguments: the data, the program, where to put it.
READ_ONLY = """set -e
mount --bind "$1" "$1"
mount --bind "$2" "$3"
mount -o remount,bind,ro /
shift 3
exec "$@"
"""


class Kubelet:
    """What a kubelet does with the volumes of a pod: owner, group and modes."""

    def __init__(self, volumes: Volumes, pod: Any) -> None:
        self.folder = volumes.folder
        self.group = pod["securityContext"]["fsGroup"]
        self.folder.chmod(0o755)
        modes = {volume["name"]: volume["secret"]["defaultMode"] for volume in pod["volumes"]}
        for folder, mode in (("secrets", modes["secret"]), ("tls", modes["tls"])):
            self.put(self.folder / folder, mode)
        self.give(self.folder / "data")

    def put(self, folder: Path, mode: int) -> None:
        """Put the files of a secret into a folder of this moment, to which links lead."""
        os.chown(folder, 0, self.group)
        folder.chmod(0o3777)
        (folder / "..1").mkdir()
        for file in [path for path in folder.iterdir() if path.is_file()]:
            os.chown(file, 0, self.group)
            file.chmod(mode)
            file.rename(folder / "..1" / file.name)
            file.symlink_to(f"..data/{file.name}")
        (folder / "..data").symlink_to("..1")

    def give(self, data: Path) -> None:
        """Give all files of a volume to the group, as at each mount."""
        for path in [data, *data.rglob("*")]:
            info = path.lstat()
            os.chown(path, info.st_uid, self.group, follow_symlinks=False)
            path.chmod(info.st_mode | (0o2770 if path.is_dir() else 0o660))


def may_mount() -> bool:
    tried = ["unshare", "--mount", "mount", "-o", "remount,bind,ro", "/"]
    return os.geteuid() == 0 and subprocess.run(tried, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not may_mount(), reason="only root can mount")
def test_the_pod_starts_again_and_again_on_a_volume_of_its_group() -> None:
    pod = workload("embedded")["spec"]["template"]["spec"]
    [container] = pod["containers"]
    security = container["securityContext"]
    assert security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"]
    assert security["capabilities"] == {"drop": ["ALL"]} and pod["securityContext"]["runAsNonRoot"]
    # A folder of pytest is closed to the user of the pod.
    with tempfile.TemporaryDirectory(prefix="agentcfg-pod-") as place:
        volumes = Volumes(Path(place))
        kubelet = Kubelet(volumes, pod)
        (volumes.folder / "server").touch()
        user, group = (str(pod["securityContext"][name]) for name in ("runAsUser", "runAsGroup"))
        identity = ["--reuid", user, "--regid", group, "--groups", group]
        program = ["setpriv", *identity, "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", place + "/server"]
        arguments = [volumes.folder / "data", BINARY, volumes.folder / "server", *program, *container["args"]]
        environment = volumes.environment(container)
        unverified = ssl._create_unverified_context()
        for _ in range(3):
            with subprocess.Popen(
                ["unshare", "--mount", "sh", "-c", READ_ONLY, "sh", *arguments],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
                cwd="/",
            ) as process:
                assert process.stdout is not None and process.stderr is not None
                line = process.stdout.readline()
                if not line.startswith("listening on https://"):
                    process.kill()
                    raise AssertionError(process.stderr.read())
                with urllib.request.urlopen(line.split()[-1] + "/readyz", context=unverified, timeout=30) as answer:
                    assert answer.status == 200
                process.send_signal(signal.SIGTERM)
                _, log = process.communicate(timeout=60)
                assert process.returncode == 0, log
            owners = {path.stat().st_uid for path in (volumes.folder / "data").rglob("*")}
            assert owners == {int(user)}, owners
            kubelet.give(volumes.folder / "data")


def test_every_setting_of_postgresql_is_known(volumes: Volumes) -> None:
    container = workload("postgresql")["spec"]["template"]["spec"]["containers"][0]
    environment = {**volumes.environment(container), "AGENTCFG_DATABASE_WAIT": "0"}
    checked = subprocess.run(
        [BINARY, "check-config"], capture_output=True, text=True, env=environment, timeout=60, cwd=volumes.folder
    )
    assert checked.returncode == 0 and "the settings are good" in checked.stdout, checked.stderr
    refused = subprocess.run(
        [BINARY, *container["args"]], capture_output=True, text=True, env=environment, timeout=60, cwd=volumes.folder
    )
    # All settings were read: what is missing is the database.
    assert refused.returncode != 0 and "cannot reach the database" in refused.stderr, refused.stderr
    environment["AGENTCFG_DATABASE_WAITS"] = "1"
    unknown = subprocess.run(
        [BINARY, *container["args"]], capture_output=True, text=True, env=environment, timeout=60, cwd=volumes.folder
    )
    assert "AGENTCFG_DATABASE_WAITS" in unknown.stderr, unknown.stderr


def test_the_services_of_compose_fit_together(volumes: Volumes) -> None:
    text = (ROOT / "packaging/compose.yaml").read_text(encoding="utf-8")
    compose = yaml.safe_load(text)
    services = compose["services"]
    for service in services.values():
        assert set(service.get("depends_on", [])) <= set(services)
        assert set(service.get("secrets", [])) <= set(compose["secrets"])
        named = {volume.split(":")[0] for volume in service.get("volumes", [])}
        assert named <= set(compose["volumes"])
        files = {value for name, value in service.get("environment", {}).items() if name.endswith("_FILE")}
        assert files == {f"/run/secrets/{name}" for name in service.get("secrets", [])}
    for name, secret in compose["secrets"].items():
        assert secret["file"] == f"./secrets/{name}"
        assert f">secrets/{name}" in text, f"{name} is not made"
    server = services["agentcfg"]
    assert server["image"] == f"agentcfg:{version()}"
    assert server["healthcheck"]["test"] == ["CMD", "agentcfg-server", "healthcheck"]
    for service in services.values():
        asked = service.get("depends_on", {})
        assert all(services[name].get("healthcheck") for name in asked) and isinstance(asked, dict)
    port = server["environment"]["AGENTCFG_LISTEN"].split(":")[1]
    assert services["caddy"]["command"][-1] == f"agentcfg:{port}"
    assert "@postgres/agentcfg'" in text and services["postgres"]["environment"]["POSTGRES_DB"] == "agentcfg"
    environment = {name: value for name, value in server["environment"].items()}
    environment["AGENTCFG_PUBLIC_URL"] = "https://agents.example.com"
    environment["AGENTCFG_LISTEN"] = "127.0.0.1:0"
    environment["AGENTCFG_DATABASE_WAIT"] = "0"
    for name, value in environment.items():
        environment[name] = value.replace("/run/secrets", str(volumes.folder / "secrets"))
    refused = subprocess.run(
        [BINARY, "serve"], capture_output=True, text=True, env=environment, timeout=60, cwd=volumes.folder
    )
    assert refused.returncode != 0 and "cannot reach the database" in refused.stderr, refused.stderr


def test_the_documentation_names_each_file() -> None:
    page = (ROOT / "docs/packages.md").read_text(encoding="utf-8")
    for path in [
        "packaging/kubernetes/embedded.yaml",
        "packaging/kubernetes/postgresql.yaml",
        "packaging/compose.yaml",
    ]:
        assert (ROOT / path).exists() and path in page, path
    assert "packaging/helm/agentcfg" in page
    for name in ("session-secret", "master-keys", "database-url"):
        assert f"--from-file={name}=" in page, name
