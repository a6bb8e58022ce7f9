"""The plugins that come with moorage keep the rules that plugins have to keep."""

from __future__ import annotations

import pytest

from moorage.framework.loading.registry import Factory
from moorage.plugins import DEFAULT_PLUGINS, GROUP_PLUGINS, OPTIONAL_PLUGINS
from moorage.testing import check_plugin

PLUGINS = [*DEFAULT_PLUGINS, *GROUP_PLUGINS, *OPTIONAL_PLUGINS]


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
def test_keeps_all_rules(plugin: Factory) -> None:
    report = check_plugin(plugin)
    assert report.ok, str(report)
    assert report.cases > 20
