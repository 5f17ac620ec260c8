"""Fathom, a KV-cache-aware frontend and router for fleets of LLM inference servers.

The package carries a native program, `fathom`; this module only finds it.
"""

from importlib.metadata import distribution
from pathlib import Path


def program() -> str:
    """The path of the installed program."""
    # pip writes down where it put the program, whatever kind of environment this is. With --target it moves the
    # program afterwards, into bin/ beside this package.
    recorded = [Path(file.locate()) for file in distribution("fathom").files or () if file.name == "fathom"]
    for path in [*recorded, Path(__file__).resolve().parents[1] / "bin" / "fathom"]:
        if path.is_file():
            return str(path.resolve())
    raise FileNotFoundError("the program 'fathom' is missing; reinstall it: pip install --force-reinstall fathom")
