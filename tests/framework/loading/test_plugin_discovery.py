"""Plugins from packages, modules, files and programs: which are there, where they run, what goes wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.config.load import default_config, parse_profiles
from moorage.config.types import SchedulerConfiguration
from moorage.framework.interface.filter_result import ALL
from moorage.framework.loading.plugin_discovery import DiscoveredPlugins, find_plugins, plugins_in_files
from moorage.framework.loading.plugin_files import files_read
from moorage.framework.loading.registry import RegistryError, with_plugin
from moorage.framework.runtime.profiles import Profiles
from moorage.plugins import default_registry

QUIET = """
class Quiet:
    name = "Quiet"

    def filter(self, cycle, pod, nodes):
        raise LookupError
"""
SCORES = """
class {name}:
    name = "{name}"

    def score_node(self, cycle, pod, node):
        return 1
"""

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes Python files where modules are looked for; what is imported from there is forgotten again."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def write(name: str, source: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
        return path

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]


def announce(folder: Path, package: str, **plugins: str) -> None:
    """Let a package be installed that has plugins."""
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    entries = "".join(f"{name} = {value}\n" for name, value in plugins.items())
    (info / "entry_points.txt").write_text(f"[moorage.plugins]\n{entries}")


def config_of(*enabled: str, args: dict[str, Any] | None = None, **points: Any) -> SchedulerConfiguration:
    """One profile with more plugins than the default ones, and perhaps with arguments for them."""
    plugins = {"multiPoint": {"enabled": [{"name": name} for name in enabled]}, **points}
    configs = [{"name": name, "args": given} for name, given in (args or {}).items()]
    return parse_profiles([{"plugins": plugins, "pluginConfig": configs}])


def find(config: SchedulerConfiguration, *files: Path, given: Any = ()) -> DiscoveredPlugins:
    return find_plugins(config, default_registry(), files, given)


def plugins_in_file(path: Path) -> list[Any]:
    return [*plugins_in_files([path])]


def at(found: DiscoveredPlugins, point: str) -> list[str]:
    """The plugins at an extension point of the first profile, in order."""
    framework = next(iter(Profiles(*found).values()))
    return [step.plugin for step in framework.at(point)]


# Packages


def test_a_plugin_of_a_package_is_there_to_be_named(write: Write, tmp_path: Path) -> None:
    write("quiet_package.py", QUIET)
    announce(tmp_path, "quiet", Quiet="quiet_package:Quiet")
    found = find(default_config())
    assert "Quiet" in found.registry
    assert found.config == default_config()
    assert "quiet_package" not in sys.modules
    assert at(find(config_of("Quiet")), "filter")[-1] == "Quiet"


def test_a_package_may_announce_a_function_that_makes_the_plugin(write: Write, tmp_path: Path) -> None:
    write("quiet_maker.py", f"{QUIET}\n\ndef make(args):\n    return Quiet()\n")
    announce(tmp_path, "quiet", Quiet="quiet_maker:make")
    assert at(find(config_of("Quiet", args={"Quiet": {"a": 1}})), "filter")[-1] == "Quiet"


def test_a_broken_package_fails_only_configurations_that_use_it(write: Write, tmp_path: Path) -> None:
    write("broken_package.py", "import nothing_of_this_name")
    announce(tmp_path, "broken", Broken="broken_package:Broken")
    Profiles(*find(default_config()))
    with pytest.raises(RegistryError) as error:
        Profiles(*find(config_of("Broken")))
    assert str(error.value) == (
        "plugin Broken of the package broken cannot be loaded: ModuleNotFoundError: No module named "
        f"'nothing_of_this_name' ({tmp_path}/broken_package.py:1); install its package, or correct the name"
    )


def test_two_packages_with_plugins_of_one_name(write: Write, tmp_path: Path) -> None:
    announce(tmp_path, "one", Quiet="one:Quiet")
    announce(tmp_path, "two", Quiet="two:Quiet")
    with pytest.raises(RegistryError, match="both have a plugin named Quiet; uninstall one of them"):
        find(default_config())


def test_a_package_with_a_plugin_of_moorage_s_name(write: Write, tmp_path: Path) -> None:
    announce(tmp_path, "mine", NodeName="mine:NodeName")
    with pytest.raises(RegistryError) as error:
        find(default_config())
    assert str(error.value) == (
        "a plugin named NodeName exists already in moorage itself; "
        "give the one in the package mine another name"
    )


# module:Class


def test_modules_in_the_place_of_names(write: Write) -> None:
    write("quiet_module.py", f"{QUIET}\n    def __init__(self, args: dict):\n        self.args = args\n")
    named = "quiet_module:Quiet"
    config = config_of(args={named: {"a": 1}}, filter={"enabled": [{"name": named}]})
    found = find(config)
    profile = found.config.profiles[0]
    assert [ref.name for ref in profile.plugins.filter.enabled] == ["Quiet"]
    assert profile.args("Quiet") == {"a": 1}
    plugin: Any = next(iter(Profiles(*found).values())).plugins["Quiet"]
    assert plugin.args == {"a": 1}


def test_one_class_by_two_ways_is_one_plugin(write: Write, tmp_path: Path) -> None:
    write("quiet_twice.py", QUIET)
    announce(tmp_path, "quiet", Quiet="quiet_twice:Quiet")
    assert at(find(config_of("quiet_twice:Quiet")), "filter")[-1] == "Quiet"


WRONG_MODULES = {
    "no module": ("no_such_module:Quiet", "ModuleNotFoundError: No module named 'no_such_module'; install"),
    "no class": ("quiet_wrong:Nobody", "there is no Nobody in "),
    "no class, but a value": ("quiet_wrong:VALUE", "VALUE is no class; name the plugin's class"),
    "no name": ("quiet_wrong:Nameless", 'has no name; write name = "Nameless" in its class'),
    "no plugin": ("quiet_wrong:Pointless", "plugin Pointless has none of the extension points"),
    "the name of another": ("quiet_wrong:Taken", "a plugin named NodeName exists already in moorage itself"),
    "an import that fails": ("quiet_fails:Quiet", "quiet_fails.py:3); correct it"),
}


@pytest.mark.parametrize(("named", "complaint"), WRONG_MODULES.values(), ids=WRONG_MODULES.keys())
def test_modules_that_cannot_be_used(write: Write, named: str, complaint: str) -> None:
    write(
        "quiet_wrong.py",
        "VALUE = 1\n\nclass Nameless:\n    def filter(self, a, b, c): ...\n\n"
        "class Pointless:\n    name = 'Pointless'\n\nclass Taken(Nameless):\n    name = 'NodeName'\n",
    )
    write("quiet_fails.py", "import os\n\nos.nothing\n")
    with pytest.raises(RegistryError) as error:
        Profiles(*find(config_of(named)))
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_arguments_by_name_and_by_module(write: Write) -> None:
    write("quiet_args.py", QUIET)
    both = {"quiet_args:Quiet": {"a": 1}, "Quiet": {"a": 2}}
    with pytest.raises(RegistryError, match="pluginConfig has Quiet twice, by name and as module:Class"):
        find(config_of("quiet_args:Quiet", args=both))


# Files


def test_a_plugin_of_a_file_runs_in_every_profile(write: Write) -> None:
    path = write("files.py", QUIET + SCORES.format(name="Loud"))
    config = parse_profiles([{"schedulerName": "a"}, {"schedulerName": "b"}])
    profiles = Profiles(*find(config, path))
    for framework in profiles.values():
        assert [step.plugin for step in framework.at("filter")][-1] == "Quiet"
        assert [step.plugin for step in framework.at("score")][-1] == "Loud"


def test_a_configuration_that_says_where_it_runs_has_the_last_word(write: Write) -> None:
    path = write("said.py", QUIET)
    profiles = [
        {"schedulerName": "a"},
        {"schedulerName": "b", "plugins": {"filter": {"enabled": [{"name": "Quiet"}]}}},
    ]
    found = Profiles(*find(parse_profiles(profiles), path))
    assert "Quiet" not in found["a"].plugins
    assert "Quiet" in found["b"].plugins
    off = parse_profiles([{"plugins": {"multiPoint": {"disabled": [{"name": "Quiet"}]}}}])
    assert "Quiet" not in at(find(off, path), "filter")


def test_arguments_alone_do_not_say_where_it_runs(write: Write) -> None:
    path = write("alone.py", f"{QUIET}\n    def __init__(self, args):\n        self.args = args\n")
    assert at(find(config_of(args={"Quiet": {"a": 1}}), path), "filter")[-1] == "Quiet"


def test_a_queue_sort_replaces_the_default_and_a_binder_is_called_first(write: Write) -> None:
    path = write(
        "sorting.py",
        "class Mine:\n    name = 'Mine'\n    def queue_sort(self, queued): return 0\n"
        "    def bind(self, cycle, pod, node_name): ...\n",
    )
    found = find(default_config(), path)
    assert at(found, "queue_sort") == ["Mine"]
    assert at(found, "bind") == ["Mine", "DefaultBinder"]


def test_what_counts_as_a_plugin_in_a_file(write: Write) -> None:
    path = write(
        "counting.py",
        "from moorage.plugins.node_name import NodeName\nfrom dataclasses import dataclass\n\n"
        "@dataclass\nclass Args:\n    a: int = 1\n\n"
        f"class _Base(NodeName):\n    name = 'Base'\n{QUIET}\nAlias = Quiet\n",
    )
    assert [plugin.__name__ for plugin in plugins_in_file(path)] == ["Quiet"]


def test_a_file_finds_the_modules_beside_it(write: Write) -> None:
    write("apart/beside_it.py", "WORDS = 'beside'")
    path = write("apart/beside.py", f"import beside_it\n{QUIET}    words = beside_it.WORDS\n")
    assert plugins_in_file(path)[0].words == "beside"


def test_a_file_is_run_again_each_time(write: Write) -> None:
    path = write("anew.py", f"{QUIET}    words = 'one'\n")
    assert plugins_in_file(path)[0].words == "one"
    write("anew.py", f"{QUIET}    words = 'two'\n")  # In the same second, and of the same size.
    assert plugins_in_file(path)[0].words == "two"


ALPHA = """
import helping_both
from moorage import StateKey

KEY = StateKey("shared")
LOADED = helping_both.count()


class Alpha:
    name = "Alpha"
    key, version = KEY, {version}

    def filter(self, cycle, pod, nodes): ...
"""
BETA = """
import helping_both
from sharing_alpha import KEY, LOADED, Alpha


class Beta:
    name = "Beta"
    key, loaded, words = KEY, LOADED, helping_both.WORDS

    def score_node(self, cycle, pod, node): ...


class Gamma(Alpha):
    name = "Gamma"
"""
HELPER = """
WORDS = "{words}"
counted = 0


def count():
    global counted
    counted += 1
    return counted
"""


@pytest.fixture
def sharing(write: Write) -> list[Path]:
    """Two files, the second of which imports from the first; both import a third, which has no plugins."""
    write("apart/helping_both.py", HELPER.format(words="one"))
    return [
        write("apart/sharing_alpha.py", ALPHA.format(version=1)),
        write("apart/sharing_beta.py", BETA),
    ]


@pytest.mark.parametrize("order", [1, -1], ids=["imported by name at last", "imported by name at first"])
def test_a_file_is_one_module_whichever_way_it_is_reached(sharing: list[Path], order: int) -> None:
    found: Any = find(default_config(), *sharing[::order])
    assert {"Alpha", "Beta", "Gamma"} <= set(found.registry)
    assert found.registry["Alpha"].key is found.registry["Beta"].key
    assert issubclass(found.registry["Gamma"], found.registry["Alpha"])
    assert found.registry["Beta"].loaded == 1


def test_files_that_are_read_again_share_what_is_new(sharing: list[Path], write: Write) -> None:
    before: Any = find(default_config(), *sharing).registry
    write("apart/sharing_alpha.py", ALPHA.format(version=2))
    write("apart/helping_both.py", HELPER.format(words="two"))  # In the same second, and of the same size.
    after: Any = find(default_config(), *sharing).registry
    assert (after["Alpha"].version, after["Gamma"].version, after["Beta"].words) == (2, 2, "two")
    assert after["Alpha"].key is after["Beta"].key is not before["Alpha"].key
    assert (before["Alpha"].version, after["Beta"].loaded) == (1, 1)


def test_a_file_that_fails_leaves_all_modules_as_they_were(sharing: list[Path], write: Write) -> None:
    before = find(default_config(), *sharing).registry["Alpha"]
    write("apart/sharing_beta.py", "from sharing_alpha import KEY\n\nKEY.nothing\n")
    with pytest.raises(RegistryError, match=r"sharing_beta.py cannot be loaded: .*sharing_beta.py:3\)"):
        find(default_config(), *sharing)
    assert sys.modules["sharing_alpha"].__dict__["Alpha"] is before


def test_the_modules_beside_a_file_are_files_to_follow(sharing: list[Path], tmp_path: Path) -> None:
    files = files_read(sharing[1:])
    find(default_config(), sharing[1])
    beside = {tmp_path / "apart" / f"{name}.py" for name in ("helping_both", "sharing_alpha")}
    assert (files, {*files_read(sharing[1:])}) == (sharing[1:], {sharing[1], *beside})


def test_a_file_with_the_name_of_a_module_of_python_s_does_not_take_its_place(write: Write) -> None:
    path = write("apart/colorsys.py", "import colorsys\n" + QUIET + "    other = colorsys\n")
    assert hasattr(plugins_in_file(path)[0].other, "rgb_to_hsv")


BASES = {
    "no name": "class Base:\n    def filter(self, cycle, pod, nodes): ...\n",
    "None for a name": "class Base:\n    name = None\n    def filter(self, cycle, pod, nodes): ...\n",
    "an annotation": "class Base:\n    name: str\n    def filter(self, cycle, pod, nodes): ...\n",
    "abstract": "from abc import ABC, abstractmethod\n\nclass Base(ABC):\n    name = 'Base'\n"
    "    @abstractmethod\n    def filter(self, cycle, pod, nodes): ...\n",
    "several": "class First:\n    def filter(self, cycle, pod, nodes): ...\n\nclass Base(First): ...\n",
}
DERIVED = """
class Derived(Base):
    name = "Derived"

    def filter(self, cycle, pod, nodes): ...
"""


@pytest.mark.parametrize("base", BASES.values(), ids=BASES.keys())
def test_base_classes_are_no_plugins(write: Write, base: str) -> None:
    path = write("with_base.py", base + DERIVED)
    assert [plugin.__name__ for plugin in plugins_in_file(path)] == ["Derived"]


def test_a_base_class_may_be_in_another_file(write: Write) -> None:
    files = [
        write("apart/lone_base.py", BASES["no name"]),
        write("apart/derived.py", f"from lone_base import Base\n{DERIVED}"),
    ]
    assert [plugin.__name__ for plugin in plugins_in_files(files)] == ["Derived"]
    with pytest.raises(
        RegistryError, match='write name = "Base" in its class, or call it _Base if it is a b'
    ):
        plugins_in_files(files[:1])


WRONG_FILES = {
    "a syntax error": ("x = 1\ndef x(:\n", "file.py cannot be loaded: SyntaxError: invalid syntax ("),
    "the line of a syntax error": ("x = 1\ndef x(:\n", "file.py:2); correct it"),
    "a missing module": (
        "\n\nimport nothing_here\n",
        "file.py:3); install its package, or correct the name",
    ),
    "an error": ("def f():\n    return {}['a']\nf()\n", "KeyError: 'a' ("),
    "an end": ("import sys\nsys.exit(3)\n", "SystemExit: 3 ("),
    "a relative import": (
        "from . import x\n",
        "install the package it belongs to, and name it as module:Class",
    ),
    "no plugin": ("x = 1\n", "there is no plugin in it; write a class with a name and one of pre_enqueue"),
    "no name": (
        "class X:\n    def filter(self, a, b, c): ...\n",
        'has no name; write name = "X" in its class',
    ),
    "a name taken by moorage": (QUIET.replace("Quiet", "NodeName"), "exists already in moorage itself"),
    "a name taken in the file": (
        f"{QUIET}\nclass Other(Quiet): ...\n",
        "a plugin named Quiet exists already in ",
    ),
    "a wrong signature": (
        "class X:\n    name = 'X'\n    def filter(self, pod): ...\n",
        "plugin X: write def filter(self, cycle, pod, nodes)",
    ),
    "a plugin that cannot be made": (
        f"{QUIET}\n    def __init__(self):\n        raise OSError('no disk')\n",
        "plugin Quiet cannot be made: OSError: no disk (file.py:9)",
    ),
    "a handle that a simulation has not": (
        f"{QUIET}\n    def __init__(self, handle):\n        handle.client\n",
        "NotHereError: handle.client: a simulation has no API server; ask handle.is_live before (file.py:9)",
    ),
}


@pytest.mark.parametrize(("source", "complaint"), WRONG_FILES.values(), ids=WRONG_FILES.keys())
def test_files_that_cannot_be_used(write: Write, source: str, complaint: str) -> None:
    path = write("file.py", source)
    with pytest.raises(RegistryError) as error:
        Profiles(*find(default_config(), path))
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match=r"nope\.py: No such file or directory; --plugin wants a Python"):
        plugins_in_file(tmp_path / "nope.py")


# Programs


class Mine:
    name = "Mine"

    def filter(self, cycle: object, pod: object, nodes: object) -> object:
        return ALL


def test_plugins_of_a_program_are_there_to_be_named() -> None:
    given = [with_plugin("Mine", Mine)]
    assert at(find(config_of("Mine"), given=given), "filter")[-1] == "Mine"
    assert "Mine" not in at(find(default_config(), given=given), "filter")
    with pytest.raises(RegistryError, match="Mine exists already in this program"):
        find(default_config(), given=given * 2)
