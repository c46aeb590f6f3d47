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
    """The first pushrelay on the PATH that is not this command, which would start itself."""
    own = Path(sys.argv[0]).resolve()
    for directory in os.environ.get("PATH", "").split(os.pathsep):
        path = Path(directory) / "pushrelay"
        if os.access(path, os.X_OK) and path.is_file() and path.resolve() != own:
            return str(path)
    sys.exit("Error: this package came without the executable: set PUSHRELAY to it, or put it on the PATH")
