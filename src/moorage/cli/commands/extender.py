"""`moorage extender`: a plugin as an extender, for clusters that keep kube-scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from moorage.cli.plugin_options import PLUGIN_HELP

DEFAULT_PORT: Final = 8888


def extender(
    plugin: Annotated[
        str,
        typer.Argument(
            help="The plugin: a name, or module:Class; not needed where a file has but one.",
            show_default=False,
        ),
    ] = "",
    plugin_files: Annotated[
        list[Path] | None, typer.Option("--plugin", metavar="FILE.py", help=PLUGIN_HELP.partition(",")[0])
    ] = None,
    args: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The plugin's arguments, as YAML or JSON.")
    ] = None,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            help="Follow the nodes and pods of this cluster: the scheduler then sends names only "
            "(nodeCacheCapable). Without it, the plugin sees the nodes that the scheduler sends, and no pods."
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(help="The port to listen on; 0: any free one.", min=0, max=65535)
    ] = DEFAULT_PORT,
    address: Annotated[
        str, typer.Option(help="The address to listen on; others than loopback need --client-ca-file.")
    ] = "127.0.0.1",
    tls_cert_file: Annotated[Path | None, typer.Option(help="Serve HTTPS with this certificate.")] = None,
    tls_private_key_file: Annotated[Path | None, typer.Option(help="The certificate's key.")] = None,
    client_ca_file: Annotated[
        Path | None, typer.Option(help="Let in only clients with a certificate of this authority.")
    ] = None,
) -> None:
    """Serve a plugin as an extender of kube-scheduler, over HTTP or HTTPS, and print how to configure it.

    Every client of an extender can bind pods: it listens on loopback only, unless client certificates are
    required. Requests must name an address, localhost or a name in the extender's certificate as host;
    those that come from pages in browsers are refused.
    """
    from moorage.cli.extender import serve

    serve(
        plugin,
        plugin_files,
        args,
        kubeconfig=kubeconfig,
        port=port,
        address=address,
        tls_cert_file=tls_cert_file,
        tls_private_key_file=tls_private_key_file,
        client_ca_file=client_ca_file,
    )
