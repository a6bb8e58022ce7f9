"""Which test executes the blocks of which page, and which commands are left out, and why."""

from __future__ import annotations

from collections.abc import Mapping

IN_A_CLONE = "tests/documents/test_pages.py::test_a_page_in_a_clone"
IN_AN_EMPTY_FOLDER = "tests/packages/test_tutorials.py::test_a_tutorial"
_OPTIONAL = "tests/optional_plugins/{}::test_the_page_shows_what_is_printed"

PLAYED: Mapping[str, tuple[str, ...]] = {
    "README.md": (
        "tests/plugin_packages/test_pages.py::test_the_readme",
        "tests/explain/test_documentation.py::test_shown_output_is_real",
    ),
    "docs/explanation/fidelity.md": (IN_A_CLONE,),
    "docs/how-to/attempts.md": (IN_A_CLONE,),
    "docs/how-to/chaos.md": (IN_A_CLONE,),
    "docs/how-to/comparing.md": (
        "tests/comparison/test_command.py::test_the_document_shows_what_is_really_printed",
    ),
    "docs/how-to/coscheduling.md": (IN_A_CLONE,),
    "docs/how-to/deploying.md": (
        "tests/manifests/test_guide.py::test_from_nothing_to_a_second_scheduler",
        "tests/manifests/test_guide.py::test_by_helm_and_by_kustomize",
        "tests/manifests/test_guide.py::test_from_kube_scheduler_to_moorage_and_back",
        "tests/manifests/test_guide.py::test_a_deployment_on_a_node_needs_no_scheduler",
    ),
    "docs/how-to/explain.md": ("tests/explain/test_documentation.py::test_shown_output_is_real",),
    "docs/how-to/explaining.md": (
        "tests/test_examples.py::test_pages_show_what_commands_really_print",
        "tests/plugin_packages/test_pages.py::test_decisions_in_python",
    ),
    "docs/how-to/groups.md": (
        "tests/test_group_examples.py::test_the_page_shows_what_commands_really_print",
        "tests/test_group_examples.py::test_the_page_has_commands_and_the_plugin",
    ),
    "docs/how-to/laptop-cluster.md": (IN_A_CLONE,),
    "docs/how-to/migrating.md": (IN_A_CLONE,),
    "docs/how-to/planning.md": ("tests/planning/test_command.py::test_the_page_shows_what_commands_print",),
    "docs/how-to/plugin-kinds.md": (IN_A_CLONE,),
    "docs/how-to/plugins.md": (
        "tests/plugin_packages/test_pages.py::test_the_page_about_plugins",
        "tests/queue/test_sub_queues.py::test_the_example_of_the_documentation_takes_turns",
    ),
    "docs/how-to/replaying.md": ("tests/test_examples.py::test_pages_show_what_commands_really_print",),
    "docs/how-to/simulating.md": (
        "tests/simulation/test_document.py::test_an_example_prints_what_the_page_shows",
    ),
    "docs/how-to/sweeping.md": (
        "tests/sweep/test_sweep.py::test_the_document_shows_the_example_and_what_it_gives",
    ),
    "docs/how-to/testing-operators.md": (IN_A_CLONE,),
    "docs/how-to/traces.md": ("tests/simulation/traces/test_documentation.py::test_shown_output_is_real",),
    "docs/optional-plugins/capacity.md": (_OPTIONAL.format("capacity/test_capacity_scheduler.py"),),
    "docs/optional-plugins/fair-share.md": (_OPTIONAL.format("fair_share/test_fair_share.py"),),
    "docs/optional-plugins/load-aware.md": (_OPTIONAL.format("load_aware/test_load_aware_scheduler.py"),),
    "docs/optional-plugins/node-request.md": (
        _OPTIONAL.format("node_request/test_node_request_scheduler.py"),
    ),
    "docs/optional-plugins/numa.md": (_OPTIONAL.format("numa/test_numa.py"),),
    "docs/optional-plugins/packing.md": (_OPTIONAL.format("packing/test_packing.py"),),
    "docs/optional-plugins/preemption-toleration.md": (
        _OPTIONAL.format("preemption_toleration/test_preemption_toleration_scheduler.py"),
    ),
    "docs/optional-plugins/qos-sort.md": (_OPTIONAL.format("qos_sort/test_qos_sort.py"),),
    "docs/reference/configuration.md": (IN_A_CLONE,),
    "docs/reference/logs.md": (IN_A_CLONE,),
    "docs/reference/python-api.md": ("tests/research/test_documentation.py::test_the_page",),
    "docs/reference/versions.md": (IN_A_CLONE,),
    "docs/tutorials/first-cluster.md": (IN_AN_EMPTY_FOLDER,),
    "docs/tutorials/first-plugin.md": (IN_AN_EMPTY_FOLDER,),
    "docs/tutorials/first-what-if.md": (IN_AN_EMPTY_FOLDER,),
    "docs/tutorials/gangs.md": (IN_AN_EMPTY_FOLDER,),
    "docs/tutorials/shadow-to-production.md": (IN_AN_EMPTY_FOLDER,),
}
"""The tests that execute a page's console and Python blocks; a page with blocks is here, or all of it is
below.
"""

_LONG = "takes minutes to hours"
_OWN_CLUSTER = "needs a cluster of the reader's own; the tutorial from shadow mode on plays it with one here"
_ENDLESS = "goes on for ever"

LEFT_OUT: Mapping[str, Mapping[str, str]] = {
    "docs/how-to/benchmarks.md": {
        "make bench": _LONG,
        "moorage bench ": _LONG,
        "(cd kubernetes && go test": "needs a checkout of Kubernetes and Go",
    },
    "docs/how-to/chaos.md": {
        "moorage chaos --runs": _LONG,
        "moorage chaos --scenario": _LONG,
        "moorage chaos --script": "needs the script of a failure, and there is none",
        "moorage chaos store  ": _LONG,
        "moorage chaos store --rounds": _LONG,
        "moorage chaos store --check": _LONG,
        "moorage chaos processes  ": _LONG,
        "moorage chaos processes --scenario": _LONG,
        "moorage soak": _LONG,
    },
    "docs/how-to/explain.md": {
        "moorage explain render-7 -n default": _OWN_CLUSTER,
        "kubectl moorage explain render-7": _OWN_CLUSTER,
        "moorage explain render-7 --from dump.json": "the same as the example that follows",
        "moorage manifests --reader": "applied in tests/manifests/test_applied.py",
    },
    "docs/how-to/explaining.md": {"kubectl get -A -o json nodes,pods": _OWN_CLUSTER},
    "docs/how-to/extenders.md": {
        "moorage extender": "needs kube-scheduler to call it; tests/extenders has the command and its calls",
    },
    "docs/how-to/groups.md": {
        "kubectl get -A -o json nodes,pods,priorityclasses,podgroups": _OWN_CLUSTER,
        "kubectl get pod train-0": _OWN_CLUSTER,
        "moorage decide cluster.json": _OWN_CLUSTER,
    },
    "docs/how-to/installing.md": {
        **dict.fromkeys(
            ("~/moorage/bin/pip ", "pipx ", "uv ", "uvx ", "make ", "pip ", "cp dist/"),
            "needs a package index; tests/packages installs what is built here",
        ),
        "python3 -m venv": "the environment that the next command needs an index for",
        "~/moorage/bin/moorage": "needs that environment; the first tutorial runs the command",
        "python3 dist/": "needs what make zipapp builds",
        "gh attestation": "needs a release",
        "cp -a state": "needs the data directory of an earlier version",
        "man ": "needs what is installed from an index; tests/cli makes the pages",
    },
    "docs/how-to/laptop-cluster.md": {"kubectl logs --namespace kube-system": _ENDLESS},
    "docs/how-to/page.md": {"moorage ui": "opens a browser, which tests/ui/browser does"},
    "docs/how-to/records.md": {
        "moorage record": "needs the log of a kube-scheduler; tests/sim/scheduler_log has some",
        "moorage replay recording.json": "needs the recording before",
        "kubectl get nodes,pods": _OWN_CLUSTER,
        "kube-scheduler -v=10": "needs a kube-scheduler",
    },
    "docs/how-to/shadow.md": {
        "moorage manifests --shadow": "applied in tests/manifests/test_applied.py",
        "moorage run --shadow": _OWN_CLUSTER,
    },
    "docs/how-to/simulating.md": {"moorage simulate --kubeconfig": _OWN_CLUSTER},
    "docs/how-to/sweeping.md": {
        "pip install 'moorage[dask]'": "needs a package index",
        "moorage sweep study.yaml --on": "needs a Dask cluster; tests/sweep has one",
    },
    "docs/optional-plugins/load-aware.md": {
        "moorage up": "waits for minutes of measured usage; the test of the plugin's cluster makes them",
        "export KUBECONFIG": "belongs to that cluster",
        "kubectl ": "belongs to that cluster",
    },
    "docs/optional-plugins/numa.md": {
        "moorage up": "the objects count after up to a minute; the test of the plugin's cluster waits less",
        "export KUBECONFIG": "belongs to that cluster",
        "kubectl ": "belongs to that cluster",
    },
    "docs/reference/running.md": {
        "export KUBECONFIG=~/.kube/config": _OWN_CLUSTER,
        "moorage run": _OWN_CLUSTER,
    },
}
"""How commands begin that nothing executes, and why; beside what the player itself leaves out (NEVER_RUN)."""
