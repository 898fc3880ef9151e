"""The files in `deploy/` parse, name real settings, and agree with one another and with the defaults of the server."""

from __future__ import annotations

import configparser
import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from stele.server.settings import ServerSettings, load_settings
from stele.storage.credentials import find_credentials

_ROOT = Path(__file__).parents[1]
_DEPLOY = _ROOT / "deploy"
_DEFAULTS = ServerSettings()


def _read(*parts: str) -> str:
    return _DEPLOY.joinpath(*parts).read_text(encoding="utf-8")


def _load_unit(name: str) -> configparser.ConfigParser:
    """Read a systemd unit; of an option given several times the last line is kept."""
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[method-assign]  # names have capitals
    unit.read_string(_read("systemd", name))
    return unit


def _load_deployment() -> Any:
    return yaml.safe_load(_read("kubernetes", "deployment.yaml"))["spec"]["template"]["spec"]


def _load_lock(name: str) -> dict[str, str]:
    text = (_ROOT / "requirements" / name).read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE))


def _list_texts() -> Iterator[Path]:
    yield from (path for path in _DEPLOY.rglob("*") if path.is_file())
    yield _ROOT / "docs" / "how-to" / "deploy.md"


@pytest.mark.parametrize("path", list(_list_texts()), ids=lambda path: path.name)
def test_every_setting_is_real(path: Path) -> None:
    """Each STELE_ variable is a setting of the server, or the password of the store."""
    named = {name.lower() for name in re.findall(r"STELE_([A-Z_]+)", path.read_text(encoding="utf-8"))}
    credentials = re.findall(r"STELE_([A-Z_]+)", inspect.getsource(find_credentials))
    assert named <= {*ServerSettings.__struct_fields__, *map(str.lower, credentials)}


def test_settings_load() -> None:
    """The server accepts the environment variables of the image, the compose file, the manifests and the unit."""
    compose = yaml.safe_load(_read("compose", "compose.yaml"))
    literals = yaml.safe_load(_read("kubernetes", "kustomization.yaml"))["configMapGenerator"][0]["literals"]
    unit = re.findall(r"^Environment=(STELE_\w+)=(.*)$", _read("systemd", "stele.service"), re.MULTILINE)
    image = re.findall(r"(STELE_\w+)=(\S+)", _read("container", "Containerfile"))
    node = {**dict(image), **compose["x-node"]["environment"]}
    pod = {**dict(image), **dict(literal.split("=", 1) for literal in literals)}
    for environ in (node, pod, dict(image), dict(unit)):
        load_settings({}, environ=environ)


def test_image_runs_without_root_and_says_whether_it_is_ready() -> None:
    """The image sets its user by number, checks readiness on its port, and has only the files copied into it."""
    lines = _read("container", "Containerfile").replace("\\\n", " ").splitlines()
    instructions = [tuple(line.split(None, 1)) for line in lines if line and not line.startswith("#")]
    final = instructions[max(index for index, (name, _) in enumerate(instructions) if name == "FROM") :]
    by_name = dict(final)
    assert by_name["USER"] == "10001"
    assert by_name["EXPOSE"] == str(_DEFAULTS.port)
    assert f"'STELE_PORT', {_DEFAULTS.port}" in by_name["HEALTHCHECK"]
    assert "/health/ready" in by_name["HEALTHCHECK"]
    assert by_name["ENTRYPOINT"] == '["stele"]'
    assert by_name["FROM"] == "scratch"
    assert "RUN" not in by_name


def test_image_has_the_versions_that_are_tested() -> None:
    """Every package of the image has the version that the tests use. Spark is not in the image."""
    image, tested = _load_lock("container.lock"), _load_lock("dev.lock")
    assert image.items() <= tested.items()
    assert not {"pyspark", "pyarrow", "pandas", "numba"} & set(image)


def test_build_context_has_what_is_copied() -> None:
    """The files that the Containerfile copies are not excluded from the build context."""
    included_paths = re.findall(r"^!(\S+)$", (_ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE)
    copied = {
        source
        for sources in re.findall(r"^COPY (?!--from)(.+) \S+$", _read("container", "Containerfile"), re.MULTILINE)
        for source in sources.split()
    }
    assert copied == set(included_paths)
    assert all((_ROOT / source).exists() for source in copied)


def test_proxy_knows_every_node() -> None:
    """The proxy lists the nodes of the compose file, accepts bodies as large as nodes do, and has a longer timeout."""
    services = yaml.safe_load(_read("compose", "compose.yaml"))["services"]
    nginx = _read("compose", "nginx.conf")
    nodes = {name for name in services if name.startswith("node-")}
    assert set(re.findall(r"server (node-\d+):8081", nginx)) == nodes
    assert set(services["proxy"]["depends_on"]) == nodes
    assert services["proxy"]["ports"] == ["127.0.0.1:8081:8081"]
    assert f"client_max_body_size {_DEFAULTS.max_request_bytes >> 20}m;" in nginx
    (timeout,) = re.findall(r"proxy_read_timeout (\d+)s;", nginx)
    assert int(timeout) > _DEFAULTS.request_seconds


def test_pods_are_those_of_the_image() -> None:
    """Pods run as the image's user, on its port, with its folders writable, and have time to stop."""
    pod = _load_deployment()
    (container,) = pod["containers"]
    assert f"USER {pod['securityContext']['runAsUser']}\n" in _read("container", "Containerfile")
    assert container["ports"][0]["containerPort"] == _DEFAULTS.port
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["path"] in {"/health/live", "/health/ready"}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/var/lib/stele", "/tmp", "/etc/stele"}
    literals = yaml.safe_load(_read("kubernetes", "kustomization.yaml"))["configMapGenerator"][0]["literals"]
    shutdown = int(dict(literal.split("=") for literal in literals)["STELE_SHUTDOWN_SECONDS"])
    (pause,) = re.findall(r"sleep\((\d+)\)", container["lifecycle"]["preStop"]["exec"]["command"][-1])
    assert pod["terminationGracePeriodSeconds"] > shutdown + int(pause)


def test_pods_get_no_variables_of_services() -> None:
    """Service links are disabled: a service named `stele` would set STELE_PORT to an address in place of a port."""
    assert yaml.safe_load(_read("kubernetes", "service.yaml"))["metadata"]["name"] == "stele"
    assert _load_deployment()["enableServiceLinks"] is False


def test_manifests_are_all_in_the_kustomization() -> None:
    """The kustomization lists each file of the folder as a resource."""
    resources = yaml.safe_load(_read("kubernetes", "kustomization.yaml"))["resources"]
    files = {path.name for path in (_DEPLOY / "kubernetes").iterdir()} - {"kustomization.yaml"}
    assert set(resources) == files
    replicas = yaml.safe_load(_read("kubernetes", "deployment.yaml"))["spec"]["replicas"]
    assert yaml.safe_load(_read("kubernetes", "poddisruptionbudget.yaml"))["spec"]["minAvailable"] < replicas


def test_unit_has_a_socket_on_the_usual_port_and_time_to_stop() -> None:
    """The unit starts the command, is notified of its readiness, and gives it time to finish requests."""
    service = _load_unit("stele.service")["Service"]
    listens = _load_unit("stele.socket")["Socket"]["ListenStream"]
    assert listens == f"{_DEFAULTS.host}:{_DEFAULTS.port}"
    assert shlex.split(service["ExecStart"])[1:] == ["serve"]
    assert (service["Type"], service["NotifyAccess"]) == ("notify", "all")
    assert int(service["TimeoutStopSec"]) > _DEFAULTS.shutdown_seconds
