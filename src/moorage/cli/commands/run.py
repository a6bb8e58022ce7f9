"""`moorage run`: the live scheduler, with kube-scheduler's flags."""

from __future__ import annotations

import typer

from moorage.cli.kube_flags import KubeFlags

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=KubeFlags)
def run(ctx: typer.Context) -> None:
    """Schedule the pods of a cluster, as kube-scheduler does, or beside it."""
    from moorage.cli.run import schedule

    schedule(ctx, ())
