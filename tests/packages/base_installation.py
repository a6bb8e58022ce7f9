"""moorage as it is without the laptop cluster: a process that cannot import it."""

from __future__ import annotations

from typing import Final

WITHOUT_CLUSTER: Final = """
import sys
from importlib.util import find_spec
sys.path[:] = [path for path in sys.path if not path.endswith("cluster/src")]
assert find_spec("moorage_cluster") is None
"""
RUN: Final = f"""{WITHOUT_CLUSTER}
from moorage.cli.main import run
run()
"""
CALLS: Final = f"""{WITHOUT_CLUSTER}
import json
from typer.testing import CliRunner
from moorage.cli.main import app

def called(words):
    result = CliRunner().invoke(app, words)
    return [result.exit_code, result.stdout, result.stderr]

answers = [called(words) for words in json.loads(sys.argv[1])]
loaded = [name for name in sys.modules if name.startswith("moorage_cluster")]
print(json.dumps([answers, loaded]))
"""
