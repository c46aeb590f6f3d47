"""The executable: the one of this wheel, or another."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_OWN = Path(__file__).parent / "_relay" / "pushrelay"


def executable() -> str:
    """PUSHRELAY, else the one that came with this package, else pushrelay on the PATH."""
    return os.environ.get("PUSHRELAY") or (str(_OWN) if _OWN.exists() else "pushrelay")


def main() -> None:
    """The command of that name: it becomes the executable."""
    path = executable()
    if path == "pushrelay":
        path = _elsewhere()
    os.execvp(path, [path, *sys.argv[1:]])


def _elsewhere() -> str:
    """The first pushrelay on the PATH that is not this command or its like, which start each other."""
    for directory in os.environ.get("PATH", "").split(os.pathsep):
        path = Path(directory).absolute() / "pushrelay"
        if not os.access(path, os.X_OK) or not path.is_file():
            continue
        with path.open("rb") as file:
            if b"pushrelay._run" not in file.read(4096):
                return str(path)
    sys.exit("Error: this package came without the executable: set PUSHRELAY to it, or put it on the PATH")
