"""What `moorage run` makes of its command line, without a server."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace
from typer.testing import CliRunner

from moorage.cli.flags import read_flags
from moorage.cli.logs import write_logs
from moorage.cli.main import app
from moorage.cli.run_flags import FLAGS
from moorage.cli.run_options import (
    access_options,
    log_options,
    metric_options,
    serving_options,
    without_keys,
)
from moorage.config.load import default_config
from moorage.config.types import Extender, ExtenderTLSConfig
from moorage.emulation.kubernetes_version import V1_37
from tests.logs import restored

UPSTREAM = Path(__file__).parent / "data" / "flags.tsv"
OTHER_DEFAULTS = {
    "bind-address": "127.0.0.1",  # Nothing is shown to other machines unless it is asked for.
    "feature-gates": "[]",
    "vmodule": "[]",  # Shown as the lists that they are.
}


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Logs go where they went before."""
    with restored():
        yield


OWN_FLAGS = {
    "plugin": "[]",
    "slow-plugin-warning": "100ms",
    "http-pipelining": "false",
    "insecure-send-credentials-over-http": "false",
    "remembered-attempts": "10",
    "remembered-attempts-memory": "64Mi",
    "record": "",
    "shadow": "false",
    "shadow-report": "",
    "tie-seed": "0",
    "ui-port": "0",
}


def test_every_flag_of_kube_scheduler_is_there_with_its_default() -> None:
    rows = [line.split("\t") for line in UPSTREAM.read_text().splitlines() if not line.startswith("#")]
    theirs = {name: default for _, name, default in rows} | OTHER_DEFAULTS | OWN_FLAGS
    assert read_flags(FLAGS, [], "run").shown() == theirs


def test_help_has_every_flag() -> None:
    result = CliRunner().invoke(app, ["run", "--help"])
    assert result.exit_code == 0
    listed = set(re.findall(r"^ +(?:-\w, )?--([\w-]+)", result.output, re.MULTILINE))
    assert listed == {flag.name for flag in FLAGS}


def test_the_version() -> None:
    assert CliRunner().invoke(app, ["run", "--version"]).output.startswith("Kubernetes v1.37.")
    assert '"minor": "37"' in CliRunner().invoke(app, ["run", "--version=raw"]).output


STYLES: dict[str, tuple[list[str], str, str]] = {
    "a value after an equals sign": (["--v=3"], "v", "3"),
    "a value as the next word": (["--v", "3"], "v", "3"),
    "a short flag": (["-v", "3"], "v", "3"),
    "a short flag with an equals sign": (["-v=3"], "v", "3"),
    "a short flag and its value in one word": (["-v3"], "v", "3"),
    "underscores": (["--leader_elect_resource_name=x"], "leader-elect-resource-name", "x"),
    "a switch": (["--leader-elect"], "leader-elect", "true"),
    "a switch with a value": (["--leader-elect=false"], "leader-elect", "false"),
    "a switch in Go's words": (["--leader-elect=F"], "leader-elect", "false"),
    "the last one counts": (["--v=1", "--v=2"], "v", "2"),
    "a list": (["--disabled-metrics=a,b"], "disabled-metrics", "[a,b]"),
    "a list over several flags": (
        ["--disabled-metrics=a", "--disabled-metrics=b"],
        "disabled-metrics",
        "[a,b]",
    ),
    "a list in the place of its default": (
        ["--authorization-always-allow-paths=/x"],
        "authorization-always-allow-paths",
        "[/x]",
    ),
    "nothing after two dashes but nothing": (["--v=1", "--", ""], "v", "1"),
}


@pytest.mark.parametrize(("words", "name", "shown"), STYLES.values(), ids=STYLES.keys())
def test_flags_are_read_as_kubernetes_components_read_them(words: list[str], name: str, shown: str) -> None:
    flags = read_flags(FLAGS, words, "run")
    assert flags.shown()[name] == shown
    assert flags.is_given(name)
    assert not flags.is_given("master")


CHOSEN = ("--emulated-version=1.37",)
"""Without it, the API server would be asked for its version."""

WRONG = {
    "a number that is none": (("--secure-port=x",), 'invalid argument "x" for "--secure-port" flag'),
    "a port that is none": (("--secure-port=70000",), "--secure-port 70000 must be between 0 and 65535"),
    "a duration without a unit": (("--leader-elect-lease-duration=5",), "missing unit in duration"),
    "neither true nor false": (("--leader-elect=maybe",), "neither true nor false"),
    "a flag that does not exist": (("--nope",), "unknown flag: --nope"),
    "a short flag that does not exist": (("-x",), "unknown shorthand flag: 'x' in -x"),
    "a flag without its value": (("--master",), "flag needs an argument: --master"),
    "words": (("now",), '"moorage run" does not take any arguments, got ["now"]'),
    "an address that is none": (("--bind-address=here",), 'failed to parse IP: "here"'),
    "a plugin that does not exist": (
        ("--plugin=nope.py",),
        "nope.py: No such file or directory; --plugin wants a Python file",
    ),
    "a patience of less than nothing": (("--slow-plugin-warning=-1s",), "-1s is less than nothing"),
    "a file that does not exist": (("--config=nope.yaml",), "nope.yaml"),
    "no kubeconfig": (("--kubeconfig=nope",), "nope"),
    "a lease that ends before its renewal": (("--leader-elect-lease-duration=5s",), "leaseDuration"),
    "a lock that is none": (("--leader-elect-resource-lock=endpoints",), "resourceLock"),
    "a verbosity that is none": (("-v=much",), '"-v, --v"'),
    "a log format that is none": (("--logging-format=xml",), "Unsupported log format"),
    "verbosity by file of JSON": (("--logging-format=json", "--vmodule=a=1"), "Only supported for text"),
    "verbosity by file that is none": (("--vmodule=a",), "does not have the pattern=N format"),
    "an alpha option": (("--log-text-split-stream",), "Feature LoggingAlphaOptions is disabled"),
    "a gate that does not exist": (("--feature-gates=Nope=true",), "unrecognized feature gate: Nope"),
    "a gate without a value": (("--feature-gates=NodeSwap",), "missing bool value for NodeSwap"),
    "a locked gate": (
        ("--feature-gates=DynamicResourceAllocation=false",),
        "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true",
    ),
    "a gate of another version": (
        ("--emulated-version=1.37", "--feature-gates=GangScheduling=true"),
        "unrecognized feature gate: GangScheduling",
    ),
    "a minimum that is too old": (
        ("--emulated-version=1.36", "--min-compatibility-version=1.34"),
        "--min-compatibility-version: 1.34: only 1.36 or 1.35 is possible",
    ),
    "another version": (("--emulated-version=1.30",), "only 1.36 or 1.37 is possible"),
    "another component's version": (("--emulated-version=wardle=1.1",), "component not registered: wardle"),
    "a version that hides nothing": (
        ("--show-hidden-metrics-for-version=1.30",),
        "only the previous minor version is allowed",
    ),
    "no metric's name": (("--disabled-metrics=a-b",), "not the name of a metric"),
    "no metric's label": (("--allow-metric-labels=a=b",), "`metricName,labelName`"),
    "no header": (("--requestheader-username-headers= ",), 'empty value in "requestheader-username-headers"'),
    "no pair of files": (("--tls-sni-cert-key=one",), "expected comma separated certificate and key"),
    "a certificate without a key": (
        ("--kubeconfig={kubeconfig}", *CHOSEN, "--secure-port=1", "--tls-cert-file=x.pem"),
        "certificate and key must be set together",
    ),
    "a TLS version that is none": (
        ("--kubeconfig={kubeconfig}", *CHOSEN, "--tls-min-version=VersionTLS9"),
        'unknown tls version "VersionTLS9"',
    ),
    "a cipher suite that is none": (
        ("--kubeconfig={kubeconfig}", *CHOSEN, "--tls-cipher-suites=TLS_NOPE"),
        "Cipher suite TLS_NOPE not supported or doesn't exist",
    ),
    "a curve that is none": (
        ("--kubeconfig={kubeconfig}", *CHOSEN, "--tls-curve-preferences=1"),
        "unsupported curve preference: 1",
    ),
    "no authority": (("--kubeconfig={kubeconfig}", *CHOSEN, "--client-ca-file=nope.crt"), "nope.crt"),
    "a star within an open path": (
        ("--kubeconfig={kubeconfig}", *CHOSEN, "--authorization-always-allow-paths=/a*b"),
        "only trailing * allowed",
    ),
}


def written(tmp_path: Path, *flags: str) -> Any:
    path = tmp_path / "written.yaml"
    result = CliRunner().invoke(app, ["run", f"--write-config-to={path}", *flags])
    assert (result.exit_code, result.output) == (0, "")
    return yaml.safe_load(path.read_text())


@pytest.mark.parametrize(("flags", "complaint"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_reported_in_one_line(
    flags: tuple[str, ...], complaint: str, tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c"}}
    kubeconfig.write_text(
        yaml.safe_dump({"clusters": [cluster], "contexts": [context], "current-context": "c"})
    )
    words = [flag.format(kubeconfig=kubeconfig) for flag in flags]
    result = CliRunner().invoke(app, ["run", *words])
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    *logged, last = result.stderr.splitlines()
    assert all(re.match(r"[IWE]\d{4} ", line) for line in logged), result.stderr
    assert last.startswith("moorage run: ")
    assert complaint in last


def test_flags_are_in_the_configuration_that_is_written(tmp_path: Path) -> None:
    config = written(
        tmp_path,
        "--leader-elect=false",
        "--leader-elect-resource-name=mine",
        "--kube-api-qps=7.5",
        "--kube-api-burst=9",
        "--kubeconfig=here",
        "--profiling=false",
    )
    assert config["leaderElection"]["leaderElect"] is False
    assert config["leaderElection"]["resourceName"] == "mine"
    assert {"kubeconfig": "here", "qps": 7.5, "burst": 9}.items() <= config["clientConnection"].items()
    assert config["enableProfiling"] is False


def test_a_configuration_file_wins_except_over_flags_on_leader_election(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "clientConnection": {"qps": 3},
                "leaderElection": {"leaderElect": False, "resourceName": "file"},
            }
        )
    )
    config = written(
        tmp_path,
        f"--config={path}",
        "--kube-api-qps=9",
        "--leader-elect-resource-name=flag",
        "--leader-elect",
    )
    assert config["clientConnection"]["qps"] == 3
    assert (config["leaderElection"]["resourceName"], config["leaderElection"]["leaderElect"]) == (
        "flag",
        True,
    )


def test_gates_that_change_defaults_do(tmp_path: Path) -> None:
    def plugins(*flags: str) -> set[str]:
        [profile] = written(tmp_path, "--emulated-version=kube=1.36", *flags)["profiles"]
        return {plugin["name"] for plugin in profile["plugins"]["multiPoint"]["enabled"]}

    off = "NodeDeclaredFeatures,ExtendWebSocketsToKubelet,InPlacePodLevelResourcesVerticalScaling"
    off += ",InPlacePodVerticalScalingInitContainers,RestartAllContainersOnContainerExits"
    off += ",UserNamespacesHostNetworkSupport"
    gates = ",".join(f"{name}=false" for name in off.split(","))
    assert plugins() - plugins(f"--feature-gates={gates}") == {"NodeDeclaredFeatures"}


def test_flags_without_effect_are_reported_with_the_reason() -> None:
    flags = read_flags(
        FLAGS, ["--contention-profiling=false", "--v=2", "--http2-max-streams-per-connection=5"], "run"
    )
    assert flags.notes() == [
        "--contention-profiling: profiles of this kind are those of Go programs",
        "--http2-max-streams-per-connection: only HTTP/1.1 is served",
    ]


def test_what_serving_flags_come_to() -> None:
    flags = read_flags(
        FLAGS,
        [
            "--bind-address=::",
            "--secure-port=1234",
            "--permit-port-sharing",
            "--tls-cert-file=c",
            "--tls-private-key-file=k",
            "--tls-sni-cert-key=a.crt,a.key:*.a.example,a.example",
            "--tls-min-version=VersionTLS13",
            "--authentication-kubeconfig=authn",
            "--authorization-kubeconfig=authz",
            "--client-ca-file=ca",
            "--requestheader-allowed-names=front,proxy",
            "--authentication-skip-lookup",
            "--authorization-webhook-cache-unauthorized-ttl=3s",
        ],
        "run",
    )
    serving = serving_options(flags)
    assert serving is not None
    assert (serving.bind_address, serving.port, serving.shares_port) == ("::", 1234, True)
    assert serving.tls.min_version == "VersionTLS13"
    [named] = serving.tls.by_name
    assert (named.certificate_file, named.patterns) == (Path("a.crt"), ("*.a.example", "a.example"))
    access = access_options(flags)
    assert (access.authentication_kubeconfig, access.authorization_kubeconfig) == (
        Path("authn"),
        Path("authz"),
    )
    assert (access.token_seconds, access.allowed_seconds, access.denied_seconds) == (10, 10, 3)
    certificates = access.certificates
    assert (certificates.client_ca_file, certificates.skips_lookup) == (Path("ca"), True)
    assert certificates.headers.allowed == ("front", "proxy")


def test_nothing_is_served_on_port_0() -> None:
    assert serving_options(read_flags(FLAGS, ["--secure-port=0"], "run")) is None


def test_what_metric_flags_come_to(tmp_path: Path) -> None:
    words = ["--disabled-metrics=a_total", "--allow-metric-labels=b,c='x,y'"]
    options = metric_options(read_flags(FLAGS, words, "run"), V1_37)
    assert options.disabled == {"a_total"}
    assert options.allowed == {("b", "c"): {"x", "y"}}
    manifest = tmp_path / "labels.yaml"
    manifest.write_text('"b,c": "x"\n')
    flags = read_flags(FLAGS, [f"--allow-metric-labels-manifest={manifest}"], "run")
    assert metric_options(flags, V1_37).allowed == {("b", "c"): {"x"}}


def test_how_much_is_logged_of_which_file(capsys: pytest.CaptureFixture[str]) -> None:
    flags = read_flags(FLAGS, ["--vmodule=test_fl*=4"], "run")
    write_logs(log_options(flags, {}))
    logging.getLogger("moorage.here").debug("from this file")
    other = logging.LogRecord("moorage.there", logging.DEBUG, "there.py", 1, "from another", None, None)
    logging.getLogger("moorage.there").handle(other)
    logging.getLogger("moorage.there").info("everywhere")
    output = capsys.readouterr().err
    assert "from this file" in output
    assert "everywhere" in output
    assert "from another" not in output


def test_keys_are_not_logged() -> None:
    tls = ExtenderTLSConfig(server_name="there", key_data=b"secret")
    extenders = (Extender(url_prefix="https://x", tls_config=tls), Extender(url_prefix="http://y"))
    config = replace(default_config(), extenders=extenders)
    shown = without_keys(config)
    assert [each.tls_config for each in shown.extenders] == [replace(tls, key_data=b""), None]
    assert replace(shown, extenders=extenders) == config


def test_streams_can_be_split(capsys: pytest.CaptureFixture[str]) -> None:
    flags = read_flags(FLAGS, ["--logging-format=json", "--log-json-split-stream"], "run")
    write_logs(log_options(flags, {"LoggingAlphaOptions": True}))
    logging.getLogger("moorage.here").info("fine")
    logging.getLogger("moorage.here").error("not fine")
    output = capsys.readouterr()
    assert '"fine"' in output.out
    assert '"not fine"' in output.err
    assert "not fine" not in output.out
