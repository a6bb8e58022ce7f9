"""The commands that `moorage` has if this package is installed."""

from __future__ import annotations

import typer

from moorage_cluster.cli.apiserver import apiserver
from moorage_cluster.cli.up import up

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(apiserver)
app.command()(up)
