"""`python -m moorage`."""

from moorage.cli.main import run

run()
