"""The image: what is in the Dockerfile, what it is built from, and that its steps install moorage."""

from __future__ import annotations

import json
import re
import shlex
import site
import subprocess
import sys
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from tests.manifests.printing import pod_of, printed

ROOT = Path(__file__).parent.parent.parent
INSTALLED = "/opt/moorage"
WITHIN_SECONDS = 180
UNCHECKED_HASH = 0b01
"""The flags of a compiled file that names its source's hash, which is not compared."""


@dataclass
class Instruction:
    """One instruction of a Dockerfile, and the stage it is in."""

    stage: int
    word: str
    rest: str


def instructions() -> list[Instruction]:
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text())
    found: list[Instruction] = []
    stage = -1
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        stage += word == "FROM"
        found.append(Instruction(stage, word, rest.strip()))
    return found


DOCKERFILE = instructions()
LAST_STAGE = DOCKERFILE[-1].stage


def of(word: str, stage: int | None = None) -> list[str]:
    return [each.rest for each in DOCKERFILE if each.word == word and stage in (None, each.stage)]


def test_what_it_is_made_from_is_named_exactly() -> None:
    bases = [each.split()[0] for each in of("FROM")]
    assert len(bases) == 2
    for base in bases:
        assert re.fullmatch(r"python:3\.\d+\.\d+-slim-[a-z]+@sha256:[0-9a-f]{64}", base), base
    assert len(set(bases)) == 1, "an environment only works with the Python that it was made with"


def test_it_runs_as_the_user_of_the_manifests() -> None:
    (user,) = of("USER")
    security = pod_of(printed())["securityContext"]
    assert user == f"{security['runAsUser']}:{security['runAsGroup']}"
    assert DOCKERFILE[-2].word == "USER", "nothing is done as root after this"


def test_it_is_the_command() -> None:
    assert of("ENTRYPOINT") == ['["moorage"]']
    assert not of("CMD")
    (environment,) = of("ENV", LAST_STAGE)
    assert f"PATH={INSTALLED}/bin:$PATH" in environment.split()


def test_the_port_is_that_of_the_probes() -> None:
    (container,) = pod_of(printed())["containers"]
    assert of("EXPOSE") == [str(container["ports"][0]["containerPort"])]


def test_only_what_is_needed_is_copied() -> None:
    copied = [words for rest in of("COPY", 0) for words in rest.split()[:-1]]
    assert copied == ["requirements", "pyproject.toml", "README.md", "LICENSE", "src", "tools"]
    assert of("COPY", LAST_STAGE) == [f"--from=build {INSTALLED} {INSTALLED}"]
    assert not of("ADD")


def test_no_tools_and_no_leftovers_are_in_it() -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert "apt" not in text, "whoever installs packages must also remove their lists"
    assert "PIP_NO_CACHE_DIR=1" in text
    uninstalled = next(rest for rest in of("RUN", LAST_STAGE) if "pip uninstall" in rest)
    assert shlex.split(uninstalled)[-3:] == ["pip", "setuptools", "wheel"]
    assert "--without-pip" in next(rest for rest in of("RUN", 0) if "venv" in rest)


def test_whatever_comes_from_outside_has_one_of_the_hashes_of_the_lock() -> None:
    installs = [shlex.split(rest) for rest in of("RUN") if " pip " in rest and " uninstall " not in rest]
    assert len(installs) == 4
    for words in installs:
        from_lock = "--require-hashes" in words and words[-1].startswith("requirements/")
        assert from_lock or "--no-deps" in words, words
        assert from_lock or {"--no-index", "--no-build-isolation"} & set(words), words


def test_it_says_where_its_bill_of_materials_is() -> None:
    (label,) = of("LABEL")
    where = f"{INSTALLED}/sbom.cdx.json"
    assert f'org.cyclonedx.sbom="{where}"' in label.split()
    assert any(rest.endswith(f"--output {where}") for rest in of("RUN", 0))


@pytest.mark.parametrize("word", ["ARG", "ENV"])
def test_no_secrets_are_in_it(word: str) -> None:
    for rest in of(word):
        assert not re.search("token|password|secret|credential", rest, re.IGNORECASE), rest


@pytest.mark.parametrize(
    ("path", "is_sent"),
    [
        (".git/config", False),
        (".venv/bin/python", False),
        ("moorage.kubeconfig", False),
        (".env", False),
        ("tests/builders.py", False),
        ("src/moorage/__pycache__/version.cpython-311.pyc", False),
        ("src/moorage/version.py", True),
        ("cluster/src/moorage_cluster/local.py", False),
        ("requirements/runtime.txt", True),
        ("tools/sbom.py", True),
        ("sbom.cdx.json", False),
        ("pyproject.toml", True),
        ("README.md", True),
        ("LICENSE", True),
    ],
)
def test_only_what_is_copied_is_sent_to_the_builder(path: str, is_sent: bool) -> None:
    assert _is_sent(path) is is_sent


def _is_sent(path: str) -> bool:
    """By the rules of .dockerignore: the last pattern that matches the path or a folder above it counts."""
    sent = True
    above = ["/".join(path.split("/")[: depth + 1]) for depth in range(path.count("/") + 1)]
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        pattern = line.removeprefix("!")
        names = [each.split("/")[-1] for each in above] if pattern.startswith("**/") else above
        if any(
            fnmatch(name, pattern.removeprefix("**/")) and ("/" not in name or "/" in pattern)
            for name in names
        ):
            sent = line.startswith("!")
    return sent


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment made by the steps of the build stage, from what they copy.

    There is no network: other packages than moorage are those of the environment that runs the tests.
    """
    build, target = tmp_path_factory.mktemp("build"), tmp_path_factory.mktemp("opt") / "moorage"
    for rest in of("COPY", 0):
        *sources, into = rest.split()
        for source in sources:
            place = build / (source if into == "./" else into)
            subprocess.run(["cp", "-r", str(ROOT / source), str(place)], check=True)
    for rest in of("RUN", 0):
        words = [word.replace(INSTALLED, str(target)) for word in shlex.split(rest)]
        if "--require-hashes" in words:
            continue
        _do([sys.executable if words[0] == "python" else words[0], *_offline(words[1:])], build)
        if "venv" in words:
            (packages,) = target.glob("lib/python*/site-packages")
            (packages / "others.pth").write_text("\n".join(site.getsitepackages()))
    return target


def _offline(words: list[str]) -> list[str]:
    """A step that does not mind what the environment that runs the tests has already."""
    return [*words, "--ignore-installed"] if "install" in words else words


def _do(words: list[str], folder: Path, **environment: str) -> str:
    done = subprocess.run(
        words,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        | environment,
        capture_output=True,
        text=True,
        timeout=WITHIN_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{words}:\n{done.stdout}{done.stderr}"
    return done.stdout


def test_its_steps_install_moorage(environment: Path, tmp_path: Path) -> None:
    moorage = str(environment / "bin" / "moorage")
    where = [str(environment / "bin" / "python"), "-c", "import moorage; print(moorage.__file__)"]
    assert _do(where, tmp_path).startswith(str(environment)), "it is this copy, not the one that is worked on"
    assert "manifests" in _do([moorage, "--help"], tmp_path)
    assert list(yaml.safe_load_all(_do([moorage, "manifests"], tmp_path))) == printed()
    assert "--leader-elect" in _do([moorage, "run", "--help"], tmp_path)


def test_its_steps_write_a_bill_of_materials(environment: Path) -> None:
    bill = json.loads((environment / "sbom.cdx.json").read_text())
    assert bill["metadata"]["component"]["name"] == "moorage"
    assert "numpy" in [each["name"] for each in bill["components"]]


def test_its_steps_leave_no_pip_behind(environment: Path) -> None:
    assert not list(environment.glob("bin/pip*"))
    assert not list(environment.glob("lib/python*/site-packages/pip"))


def test_what_is_installed_is_compiled_already_without_times(environment: Path) -> None:
    (compiled,) = environment.glob("lib/python*/site-packages/moorage/__pycache__/version.*.pyc")
    flags = int.from_bytes(compiled.read_bytes()[4:8], "little")
    assert flags == UNCHECKED_HASH
