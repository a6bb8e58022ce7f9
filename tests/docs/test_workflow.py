"""The workflow that builds and publishes the site."""

from __future__ import annotations

import yaml

from tools.docs.build import ROOT


def test_pull_requests_build_the_site_and_only_main_publishes_it() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/docs.yml").read_text())
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]

    # YAML reads the key `on` as true.
    assert workflow[True] == {"push": {"branches": ["main"]}, "pull_request": None}
    assert [step["run"].split()[:2] for step in build["steps"] if "run" in step] == [["make", "docs"]]
    assert publish["if"] == "github.event_name == 'push'"
    assert publish["needs"] == "build"
    assert workflow["permissions"] == {"contents": "read"}
