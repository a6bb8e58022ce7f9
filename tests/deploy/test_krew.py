"""`kubectl moorage` by krew: archives and a manifest that krew takes, and a program that kubectl finds."""

from __future__ import annotations

import os
import subprocess
import sys
import zipapp
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.krew_rules import install, problems
from tools.krew import BuildError, Platform, archive, by_platform

URL = "https://registry.example/v1.2.3"
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


def build(folder: Path, name: str) -> Path:
    """A single-file build that says which it is and what it was given."""
    source = folder / f"source-{name}"
    source.mkdir()
    (source / "__main__.py").write_text(f"import sys\n\nprint({name!r}, *sys.argv[1:])\n")
    path = folder / f"moorage-1.2.3-{name}.pyz"
    zipapp.create_archive(source, path)
    return path


def packed(folder: Path, *builds: Path) -> dict[str, Any]:
    """The manifest of some builds, in the folder with their archives."""
    words = [*map(str, builds), "--url", URL, "--output", str(folder)]
    subprocess.run([sys.executable, "-m", "tools.krew", *words], check=True, timeout=60)
    manifest: dict[str, Any] = yaml.safe_load((folder / "moorage.yaml").read_text())
    return manifest


def test_krew_takes_the_manifest(tmp_path: Path) -> None:
    names = ("py3.11-linux-x86_64", "py3.12-linux-x86_64", "py3.11-macosx-11.0-universal2")
    manifest = packed(tmp_path, *(build(tmp_path, name) for name in names))
    assert list(problems("moorage.yaml", manifest)) == []
    assert manifest["spec"]["version"] == "v1.2.3"
    assert [each["uri"] for each in manifest["spec"]["platforms"]] == [
        f"{URL}/kubectl-moorage-1.2.3-{platform}.tar.gz"
        for platform in ("darwin-amd64", "darwin-arm64", "linux-amd64")
    ]
    assert "${" not in (tmp_path / "moorage.yaml").read_text()


BROKEN: dict[str, tuple[str, Any]] = {
    "version": ("version", "1.2.3"),
    "shortDescription": ("shortDescription", "Does everything that a scheduler does, and more."),
    "unknown fields": ("author", "me"),
    "no platforms": ("platforms", []),
}


@pytest.mark.parametrize("problem", BROKEN)
def test_a_manifest_that_krew_refuses_would_be_noticed(problem: str, tmp_path: Path) -> None:
    manifest = packed(tmp_path, build(tmp_path, "py3.11-linux-x86_64"))
    field, value = BROKEN[problem]
    manifest["spec"][field] = value
    assert list(problems("moorage.yaml", manifest)) == [problem]


def test_kubectl_runs_what_krew_installs(tmp_path: Path) -> None:
    names = ("py3.9-linux-x86_64", f"py{HERE}-linux-x86_64", "py3.99-linux-x86_64")
    (platform,) = packed(tmp_path, *(build(tmp_path, name) for name in names))["spec"]["platforms"]
    programs = install(platform, tmp_path / platform["uri"].rpartition("/")[2], tmp_path)
    python = Path(sys.executable).parent
    path = os.pathsep.join([str(programs), str(python), "/usr/bin", "/bin"])
    done = subprocess.run(
        [str(python / "kubectl"), "moorage", "explain", "a pod"],
        env={"PATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == (f"py{HERE}-linux-x86_64 explain a pod\n", "")


def test_without_a_python_that_fits_it_is_said_which_do(tmp_path: Path) -> None:
    (platform,) = packed(tmp_path, build(tmp_path, "py3.98-linux-x86_64"))["spec"]["platforms"]
    programs = install(platform, tmp_path / platform["uri"].rpartition("/")[2], tmp_path)
    done = subprocess.run([programs / "kubectl-moorage"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "needs Python in one of these versions: 3.98" in done.stderr


def test_the_same_builds_make_the_same_archive(tmp_path: Path) -> None:
    path = build(tmp_path, "py3.11-linux-x86_64")
    before = archive([path])
    os.utime(path, (0, 0))
    path.chmod(0o600)
    assert archive([path]) == before


def test_builds_are_sorted_by_platform() -> None:
    linux = [Path(f"moorage-1.2.3-py3.{minor}-linux-aarch64.pyz") for minor in (11, 12)]
    mac = Path("moorage-1.2.3-py3.11-macosx-14.0-arm64.pyz")
    assert by_platform([mac, *linux]) == (
        "1.2.3",
        {Platform("linux", "arm64"): linux, Platform("darwin", "arm64"): [mac]},
    )


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["moorage-1.2.3-py3.11-win-amd64.pyz"], "is not the name of a single-file build of a release"),
        (["moorage-1.2.3rc1-py3.11-linux-x86_64.pyz"], "is not the name of a single-file build of a release"),
        (["moorage-1.2.3-py3.11-linux-s390x.pyz"], "there is no architecture s390x"),
        (["moorage-1.2.3-py3.11-linux-x86_64.pyz", "moorage-1.2.4-py3.11-linux-x86_64.pyz"],
         "builds of one version are expected, not of 1.2.3, 1.2.4"),
    ],
)  # fmt: skip
def test_what_krew_could_not_install_is_refused(names: list[str], says: str) -> None:
    with pytest.raises(BuildError, match=says):
        by_platform(map(Path, names))
