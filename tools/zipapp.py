"""Pack moorage, the laptop cluster and all they need into one file, for this Python and platform.

`make zipapp` runs this on built wheels. What comes from outside has the hashes of the lock. The file runs
with `python3 FILE.pyz COMMAND`, without network: at its first start it unpacks itself into the user's cache.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path


def main() -> int:
    """Build the file beside the wheels."""
    parser = argparse.ArgumentParser(description="Pack wheels and a lock into one file that Python runs.")
    parser.add_argument("--pex", type=Path, required=True, help="the program that packs")
    parser.add_argument("--wheels", type=Path, required=True, help="the folder with our wheels")
    parser.add_argument("--lock", type=Path, required=True, help="requirements with hashes")
    chosen = parser.parse_args()
    own = sorted(chosen.wheels.glob("moorage*.whl"))
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as requirements:
        requirements.write(chosen.lock.read_text() + "".join(map(_requirement, own)))
        requirements.flush()
        command = [
            str(chosen.pex.absolute()),
            *("--python", sys.executable),
            *("--requirement", requirements.name),
            *("--find-links", str(chosen.wheels)),
            *("--console-script", "moorage"),
            *(
                "--venv",
                "prepend",
            ),  # As in any environment, `python -m moorage` works in it: the page is such a process.
            *("--python-shebang", "/usr/bin/env python3"),
            *("--output-file", str(chosen.wheels / file_name(own[0]))),
        ]
        return subprocess.run(command, check=False).returncode


def file_name(wheel: Path) -> str:
    """The name of the file, by what it runs on."""
    version = wheel.name.split("-")[1]
    python = f"py{sys.version_info.major}.{sys.version_info.minor}"
    return f"moorage-{version}-{python}-{sysconfig.get_platform()}.pyz"


def _requirement(wheel: Path) -> str:
    name, version = wheel.name.split("-")[:2]
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return f"{name.replace('_', '-')}=={version} --hash=sha256:{digest}\n"


if __name__ == "__main__":
    sys.exit(main())
