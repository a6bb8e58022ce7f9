"""`moorage ui`: a cluster or files in a browser."""

from __future__ import annotations

from os import environ
from pathlib import Path
from typing import Annotated, Final

import typer

from moorage.cli.evaluation_options import EvaluatedConfig
from moorage.cli.plugin_options import PluginFiles
from moorage.cli.scheduler_options import SCHEDULER_SECTION, CertificateAuthority, SkipVerification
from moorage.cli.version_options import FeatureGateFlags, VersionOfServer

ANY_PORT_FLAG: Final = "--or-any-port"
END_FLAG: Final = "--until-stdin-ends"


def ui(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="Instead of a cluster: a recording, a result of moorage simulate -o json, or a report of "
            "shadow mode; two of a kind are compared.",
        ),
    ] = None,
    kubeconfig: Annotated[Path | None, typer.Option(help="The kubeconfig to use.")] = None,
    context: Annotated[str, typer.Option(help="The context of it to use.")] = "",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port on 127.0.0.1; 0: any free one.")
    ] = 6480,
    config: EvaluatedConfig = None,
    plugin: PluginFiles = None,
    emulated_version: VersionOfServer = None,
    feature_gates: FeatureGateFlags = None,
    scheduler: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="The secure port of a running moorage scheduler, to show its queue and attempts.",
            rich_help_panel=SCHEDULER_SECTION,
        ),
    ] = "",
    certificate_authority: CertificateAuthority = None,
    insecure_skip_tls_verify: SkipVerification = False,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    or_any_port: Annotated[
        bool, typer.Option(ANY_PORT_FLAG, help="Use any free port if that of --port is taken.")
    ] = False,
    until_stdin_ends: Annotated[
        bool,
        typer.Option(
            END_FLAG, help="End when standard input ends: for programs that show the page while they run."
        ),
    ] = False,
) -> None:
    """Show a cluster, its queue and every decision in a browser.

    Reads the cluster with the permissions of the kubeconfig, and changes nothing. With a file instead, shows
    any moment of it; with two, both side by side. The printed address contains a token, without which the
    page shows nothing.
    For example: moorage ui --open
    """
    from moorage.cli.explain import ExplainOptions
    from moorage.cli.inspection import SchedulerAddress
    from moorage.cli.page_process import TOKEN_VARIABLE
    from moorage.cli.ui import UiOptions, serve_page

    address = SchedulerAddress(
        scheduler,
        kubeconfig,
        certificate_authority,
        insecure_skip_tls_verify,
        context,
        environ.get(TOKEN_VARIABLE, ""),
    )
    evaluation = ExplainOptions(
        "", "", "", config, plugin, emulated_version, feature_gates, None, kubeconfig, context
    )
    serve_page(
        UiOptions(
            kubeconfig,
            context,
            port,
            open_page,
            evaluation,
            address if scheduler else None,
            or_any_port,
            until_stdin_ends,
            tuple(files or ()),
        )
    )
