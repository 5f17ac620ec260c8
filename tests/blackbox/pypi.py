"""What PyPI has, where it can be reached. Tests that need it are skipped elsewhere, and say so."""

import hashlib
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fathom-tests"
PATIENCE = 600  # seconds for a download


def unreachable(error):
    pytest.skip(f"PyPI cannot be reached: {error}")


def python_with(*requirements):
    """The interpreter of an environment that has these packages, made once."""
    name = hashlib.sha256(" ".join([sys.version, *requirements]).encode()).hexdigest()[:16]
    folder = CACHE / f"venv-{name}"
    done = folder / "complete"
    if not done.exists():
        try:
            subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True, timeout=PATIENCE)
            subprocess.run([folder / "bin/python", "-m", "pip", "install", "--quiet", *requirements], check=True,
                           capture_output=True, timeout=PATIENCE)
        except (subprocess.SubprocessError, OSError) as error:
            unreachable(getattr(error, "stderr", b"")[-300:] or error)
        done.touch()
    return folder / "bin/python"


def members_of(package, version, sha256, suffix):
    """The files of a source archive whose path ends so, as {name: text}."""
    archive = CACHE / f"{package.replace('-', '_')}-{version}.tar.gz"
    if not archive.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        try:
            subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", package, "--dest",
                            CACHE, f"{package}=={version}"], check=True, capture_output=True, timeout=PATIENCE)
        except (subprocess.SubprocessError, OSError) as error:
            unreachable(getattr(error, "stderr", b"")[-300:] or error)
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == sha256, f"{archive} is not what was published"
    with tarfile.open(archive) as tar:
        return {Path(member.name).name: tar.extractfile(member).read().decode()
                for member in tar if member.name.endswith(suffix)}
