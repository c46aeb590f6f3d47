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
    os.execvp(path, [path, *sys.argv[1:]])
