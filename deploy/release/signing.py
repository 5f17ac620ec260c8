"""Who signs a release? A key that the caller gives: a file, or a key of the caller's GnuPG.

The caller's keyring is only read. A key file is imported into a folder that is deleted afterwards.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from artefact import Refused

HOW = ("give a key with --key KEY or RELEASE_KEY: a file with an armoured secret key (gpg --export-secret-keys "
       "--armor), or the fingerprint of a key in your GnuPG")


def folder_for_sockets():
    """gpg talks to its agent through a socket in its folder, and the path of a socket has at most 107 bytes."""
    folder = tempfile.gettempdir()
    return folder if len(os.fsencode(folder)) <= 60 else "/tmp"


class Signer:
    """Use it in `with`."""

    def __init__(self, key, not_before):
        """Signatures have the time `not_before`, or that of a newer key, so that two runs give the same bytes."""
        if not key:
            raise Refused(f"no key to sign with; {HOW}")
        if not shutil.which("gpg"):
            raise Refused("gpg is missing; Debian's package gnupg has it")
        self._key, self._not_before = key, not_before
        self._home = None

    def __enter__(self):
        try:
            if Path(self._key).is_file():
                self._home = tempfile.mkdtemp(prefix="fathom-gpg-", dir=folder_for_sockets())
                self._gpg("--import", self._key)
                self._key = ""
            self.fingerprint, created = self._secret_key()
        except BaseException:
            self.__exit__()
            raise
        self._time = max(self._not_before, created)
        return self

    def __exit__(self, *_):
        if self._home:
            # gpg started an agent for that folder.
            subprocess.run(["gpgconf", "--homedir", self._home, "--kill", "all"], capture_output=True, check=False)
            shutil.rmtree(self._home, ignore_errors=True)

    def _gpg(self, *arguments):
        environment = {**os.environ, **({"GNUPGHOME": self._home} if self._home else {})}
        command = ["gpg", "--batch", "--no-tty", "--quiet", "--no-auto-check-trustdb", *map(str, arguments)]
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              check=False)
        if done.returncode:
            raise Refused(f"gpg {arguments[0]}: {done.stderr.decode(errors='replace').strip()}; {HOW}")
        return done.stdout

    def _secret_key(self):
        """The fingerprint and the time of creation of the one key that is meant."""
        lines = self._gpg("--list-secret-keys", "--with-colons", *([self._key] if self._key else [])).decode()
        rows = [line.split(":") for line in lines.splitlines()]
        created = [int(row[5]) for row in rows if row[0] in ("sec", "ssb")]
        fingerprints = [after[9] for row, after in zip(rows, rows[1:]) if row[0] == "sec" and after[0] == "fpr"]
        if len(fingerprints) != 1:
            raise Refused(f"{len(fingerprints)} secret keys instead of one; {HOW}")
        return fingerprints[0], max(created)

    def _sign(self, *arguments):
        self._gpg("--faked-system-time", f"{self._time}!", "--local-user", self.fingerprint, "--digest-algo", "SHA512",
                  "--yes", "--output", *arguments)

    def clear_sign(self, path, output):
        self._sign(output, "--clear-sign", path)

    def detached(self, path, output):
        self._sign(output, "--armor", "--detach-sign", path)

    def write_public_key(self, armoured, binary):
        # Signatures of others would make the bytes depend on the day.
        options = ("--export-options", "export-minimal")
        armoured.write_bytes(self._gpg(*options, "--armor", "--export", self.fingerprint))
        binary.write_bytes(self._gpg(*options, "--export", self.fingerprint))
