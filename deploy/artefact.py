"""What do all artefacts of one release agree on? The version, the time of their files, and the libraries inside.

The scripts in deploy/*/build import it; it needs nothing but Python.
"""

import calendar
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


class Refused(Exception):
    """The artefact cannot be made; the message names the cause and the fix."""


def run_main(main):
    """Turns a refusal into one line and an exit status."""
    try:
        main()
    except Refused as refusal:
        sys.exit(f"{Path(sys.argv[0]).resolve().relative_to(ROOT)}: {refusal}")


def version():
    """It is written in one place."""
    found = re.search(r"^project\(fathom VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    if not found:
        raise Refused("CMakeLists.txt has no line 'project(fathom VERSION ...'")
    return found[1]


def release_time():
    """Seconds since 1970 that every time stamp in an artefact is made of, so that two builds give the same bytes."""
    if epoch := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(epoch)
    if _git("rev-parse", "--show-toplevel") == str(ROOT) and (committed := _git("log", "-1", "--format=%ct")):
        return int(committed)
    # A source archive: times of files are those of its unpacking. The same rule as in deploy/debian/build.
    day = re.search(r"^## \[[0-9.]+\] - ([0-9-]+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    return calendar.timegm(time.strptime(day[1] if day else "1980-01-01", "%Y-%m-%d"))


def _git(*arguments):
    """What git prints; nothing where there is no git or no repository."""
    if not shutil.which("git"):
        return ""
    asked = subprocess.run(["git", "-C", ROOT, *arguments], text=True, capture_output=True, check=False)
    return asked.stdout.strip() if asked.returncode == 0 else ""


def summary():
    """One line on what Fathom is: the Debian package's."""
    return re.search(r"^Description: (.*)$", (ROOT / "deploy/debian/control.in").read_text(), re.MULTILINE)[1]


@dataclass(frozen=True, order=True)
class Library:
    """A library that is linked into the binary."""

    source: str    # Debian's source package
    version: str   # Debian's version of it
    licence: Path  # Debian's copyright file


def libraries_in(text, where):
    """The lines `SOURCE_PACKAGE VERSION COPYRIGHT_FILE`, sorted."""
    found = set()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split(None, 2)
        if words and len(words) != 3:
            raise Refused(f"{where}:{number}: expected SOURCE_PACKAGE VERSION COPYRIGHT_FILE, found '{line}'")
        if words:
            if not re.fullmatch(r"[a-z0-9][a-z0-9.+-]+", words[0]):
                raise Refused(f"{where}:{number}: '{words[0]}' is no name of a Debian source package")
            found.add(Library(words[0], words[1], Path(words[2])))
    return sorted(found)
