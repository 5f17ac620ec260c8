"""What bash, zsh and fish offer for a command line of fathom: the shells themselves are asked.

Each takes all command lines in one process. bash and zsh complete only at a terminal, so they get one.
"""

import os
import pty
import select
import shlex
import subprocess
import time
from pathlib import Path

import wire
from conftest import run_fathom

SHELLS = ("bash", "zsh", "fish")


def script_of(shell):
    done = run_fathom("completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def asked(shell, lines, folder, script=None):
    """{line: what is offered for its last word}. Paths are those below `folder`."""
    lines = list(lines)
    home = Path(folder) / f".{shell}"
    home.mkdir()
    (home / "script").write_text(script or script_of(shell))
    (home / "lines").write_text("".join(line + "\n" for line in lines))
    ask = {"bash": ask_bash, "zsh": ask_zsh, "fish": ask_fish}[shell]
    answers = ask(home, lines, folder)
    assert len(answers) == len(lines), answers
    return dict(zip(lines, answers))


def surroundings(home):
    return {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "xterm", "LC_ALL": "C.UTF-8"}


def at_terminal(command, typed, home, folder, prompt=""):
    """Runs a command with a terminal of its own, types when it is ready, and waits until it ends."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execvpe(command[0], command, surroundings(home))
    shown = b""
    deadline = time.monotonic() + wire.PATIENCE
    try:
        left = typed.encode()
        while time.monotonic() < deadline:
            ready = left and prompt.encode() in shown
            readable, writable, _ = select.select([terminal], [terminal] if ready else [], [], 1)
            if readable:
                try:
                    piece = os.read(terminal, 65536)
                except OSError:  # the other end is closed: it has ended
                    piece = b""
                if not piece:
                    break
                shown += piece
            elif writable:
                left = left[os.write(terminal, left[:256]):]
        else:
            raise AssertionError(f"{command} does not end; it shows:\n{shown.decode(errors='replace')}")
    finally:
        os.close(terminal)
        os.waitpid(child, 0)


def ask_bash(home, lines, folder):
    """Readline puts all it would offer into the line; a key of ours writes the line down."""
    answers = home / "answers"
    (home / "start").write_text(f"""
PS1=' ready '
source {home}/script
bind 'set bell-style none'
bind 'set completion-query-items 0'
bind -x '"\\C-xw": printf "%s\\n" "$READLINE_LINE" >>{answers}'
""")
    typed = "".join(f"{line}\x1b*\x18w\x15" for line in lines) + "exit\n"
    at_terminal(["bash", "--noprofile", "--rcfile", str(home / "start"), "-i"], typed, home, folder, " ready ")
    return [[] if after.rstrip() == line.rstrip() else words_behind(line, after)
            for line, after in zip(lines, answers.read_text().splitlines())]


def words_behind(line, after):
    begun = line.rpartition(" ")[0] + " "
    if "=" in line.rpartition(" ")[2]:
        begun = line.rpartition("=")[0] + "="
    assert after.startswith(begun), (line, after)
    return shlex.split(after.removeprefix(begun))


def ask_zsh(home, lines, folder):
    """All that completion adds goes through compadd, which is asked what of it fits."""
    answers = home / "answers"
    (home / "start").write_text(f"""
PS1=
fpath=({home}/functions $fpath)
autoload -U compinit
compinit -u -D
zstyle ':completion:*' menu no
compadd() {{
  local -a fitting
  if [[ " $* " != *' -'(O|A|D)' '* ]]; then
    builtin compadd -A fitting "$@"
    print -rl -- $fitting >>{answers}
  fi
  builtin compadd "$@"
}}
zle-line-init() {{
  local line
  for line in ${{(f)"$(<{home}/lines)"}}; do
    print -r -- "== $line" >>{answers}
    BUFFER=$line CURSOR=${{#line}}
    zle complete-word
  done
  exit
}}
zle -N zle-line-init
""")
    (home / "functions").mkdir()
    (home / "functions/_fathom").write_text((home / "script").read_text())
    at_terminal(["zsh", "-f", "-i"], f"source {home}/start\n", home, folder)
    return sections(answers.read_text())


def ask_fish(home, _, folder):
    done = subprocess.run(["fish", "--no-config", "-c", f"""
source {home}/script
while read --local --delimiter \\n line
    echo "== $line"
    complete -C "$line" | string replace -r '\\t.*' ''
end <{home}/lines
true"""], env=surroundings(home), cwd=folder, text=True, capture_output=True,
                          timeout=wire.PATIENCE, check=True)
    assert done.stderr == ""
    return sections(done.stdout)


def sections(text):
    """What stands between the lines that begin with ==."""
    parts = ("\n" + text).split("\n== ")[1:]
    return [[word for word in part.split("\n")[1:] if word] for part in parts]
