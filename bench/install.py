"""How long is it from nothing to the first answer, and how large and quick to start is it? See bench/README.md."""

import argparse
import contextlib
import json
import os
import platform
import shutil
import statistics
import subprocess
import tempfile
import time
import urllib.request
import zipfile
from pathlib import Path

from _rig import (DIRECT, FATHOM, MODEL, ROOT, START, Failed, answers, free_port, parse_arguments, print_table,
                  require_binary, run_main, save)

PYTHON = "/usr/bin/python3"
PEERS_FOLDER = ROOT / "build/bench-peers"
SETTLE = 2  # seconds after the first answer before memory is read
PATIENCE = 600  # seconds for a download

# Other routers that the Python package index has: how they are started, and the page that answers once they live.
# Of Dynamo only the size of its router's library is measured, which its frontend needs with much else.
PEERS = {
    "sglang-router": (["bin/python", "-m", "sglang_router.launch_router", "--host", "127.0.0.1"], "/liveness"),
    "vllm-router": (["bin/vllm-router", "--host", "127.0.0.1"], "/liveness"),
    "smg": (["bin/smg", "launch", "--host", "127.0.0.1"], "/liveness"),
    "ai-dynamo-runtime": None,
}


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, timeout=PATIENCE, **options)
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command[:6]))} ended with {done.returncode}:\n{done.stdout[-2000:]}")
    return done.stdout


def megabytes(size):
    return f"{size / 1e6:.1f} MB"


def seconds(value):
    return f"{value:.2f} s"


# --- processes


@contextlib.contextmanager
def started(command, folder):
    """A process in its own session, so that all its children are ended with it."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   cwd=folder, start_new_session=True)
        process.log = log
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 15)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()


def wait_for(process, url):
    deadline = time.monotonic() + START
    while not answers(url):
        if process.poll() is not None or time.monotonic() > deadline:
            process.log.seek(0)
            raise Failed(f"{url} did not answer 200:\n{process.log.read().decode(errors='replace')[-2000:]}")
        time.sleep(0.001)


def resident_bytes(pid):
    """Of a process and its children, without what they share counted twice."""
    pids, total = [pid], 0
    for each in pids:
        for task in Path(f"/proc/{each}/task").iterdir():
            pids += [int(child) for child in (task / "children").read_text().split()]
        lines = Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def start_of(command, live, engine, runs):
    """Median seconds from exec to 200, and the memory once it stands idle."""
    times, memory = [], []
    for number in range(runs):
        port = free_port()
        begin = time.monotonic()
        with started([*command, "--port", port, "--worker-urls", engine], "/") as process:
            wait_for(process, f"http://127.0.0.1:{port}{live}")
            times.append(time.monotonic() - begin)
            if number == 0:
                time.sleep(SETTLE)
                memory.append(resident_bytes(process.pid))
    return {"start_seconds": statistics.median(times), "idle_bytes": memory[0]}


def ask(port):
    body = json.dumps({"model": MODEL, "max_tokens": 4, "messages": [{"role": "user", "content": "How deep is it?"}]})
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", body.encode(),
                                     {"content-type": "application/json"})
    with DIRECT.open(request, timeout=START) as answer:
        if not json.load(answer)["choices"]:
            raise Failed("an answer without a choice")


def first_answer(*program):
    """A mock engine and a router of that program: until a chat is answered through both."""
    engine, router = free_port(), free_port()
    with started([*program, "mock", "--port", engine, "--model", MODEL], "/") as mock:
        wait_for(mock, f"http://127.0.0.1:{engine}/health")
        workers = f"http://127.0.0.1:{engine}"
        with started([*program, "serve", "--port", router, "--worker-urls", workers], "/") as serve:
            wait_for(serve, f"http://127.0.0.1:{router}/ready")
            ask(router)


# --- from nothing to the first answer


def newest(folder, pattern):
    found = sorted((ROOT / folder).glob(pattern), key=lambda path: path.stat().st_mtime)
    return found[-1] if found else None


def timed(steps):
    """{name: seconds} of functions that are run in turn, and their sum."""
    taken = {}
    for name, step in steps.items():
        begin = time.monotonic()
        step()
        taken[name] = time.monotonic() - begin
    return {**taken, "in all": sum(taken.values())}


def from_package(deb, folder):
    """In a Debian that has apt and nothing else. Making it is not counted; downloading package lists is."""
    root = folder / "root"
    run("mmdebstrap", "--quiet", "--variant=apt", "bookworm", root)
    shutil.copyfile(deb, root / "tmp" / deb.name)
    # Lists that came with the making are not those of a fresh machine.
    shutil.rmtree(root / "var/lib/apt/lists", ignore_errors=True)
    apt = ["chroot", root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y"]
    return timed({"lists": lambda: run(*apt, "update"),
                  "install": lambda: run(*apt, "install", "--no-install-recommends", f"/tmp/{deb.name}"),
                  "first answer": lambda: first_answer("chroot", root, "/usr/bin/fathom")})


def from_wheel(wheel, folder):
    venv = folder / "venv"
    return timed({"venv": lambda: run(PYTHON, "-m", "venv", venv),
                  "install": lambda: run(venv / "bin/pip", "install", "--quiet", "--no-index", wheel, cwd=folder),
                  "first answer": lambda: first_answer(venv / "bin/fathom")})


def why_no_root():
    if os.geteuid() != 0:
        return "needs root"
    return None if shutil.which("mmdebstrap") else "mmdebstrap is not installed"


def wheel_to_measure(folder, smallest):
    """The published one; with --smallest one of the binary at hand, which only this machine can run."""
    if smallest:
        run(ROOT / "deploy/wheel/build", FATHOM, folder, "--allow-libraries")
        return next(folder.glob("*.whl"))
    return newest("build/wheel", f"*{platform.machine()}.whl")


def installations(options, folder):
    found = {}
    deb = None if options.smallest else newest("build/package", "*.deb")
    if options.smallest:
        print("without the package: no network with --smallest")
    elif not deb:
        print("without the package: none in build/package; ./dev package makes it")
    elif reason := why_no_root():
        print(f"without the package: {reason}")
    else:
        found["Debian package"] = from_package(deb, folder)
    if wheel := wheel_to_measure(folder, options.smallest):
        found["wheel"] = from_wheel(wheel, folder)
    else:
        print("without the wheel: none in build/wheel; ./dev wheel makes it")
    return found


# --- sizes and peers


def image_bytes():
    """{architecture: compressed bytes} of the layout in build/image."""
    folder, found = ROOT / "build/image", {}
    if not (folder / "index.json").exists():
        return found

    def blob(descriptor):
        return json.loads((folder / "blobs" / descriptor["digest"].replace(":", "/")).read_bytes())
    for descriptor in json.loads((folder / "index.json").read_text())["manifests"]:
        inner = blob(descriptor)
        for manifest in inner.get("manifests", [descriptor]):
            content = blob(manifest)
            name = blob(content["config"])["architecture"]
            found[name] = sum(layer["size"] for layer in content["layers"])
    return found


def own_sizes():
    files = [newest("build/package", "*.deb"), *sorted((ROOT / "build/wheel").glob("*.whl"))]
    sizes = {path.name: path.stat().st_size for path in files if path}
    return {**sizes, **{f"image, {name}": size for name, size in image_bytes().items()}}


def folder_bytes(folder):
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def peer(name, engine, runs):
    """Its wheel's size, what pip installs for it, and how it starts."""
    folder = PEERS_FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        run(PYTHON, "-m", "venv", folder / "venv")
        pip = [folder / "venv/bin/python", "-m", "pip"]
        run(*pip, "download", "--quiet", "--no-deps", "--dest", folder, name)
        wheel = next(folder.glob("*.whl"))
        numbers = {"file": wheel.name, "download_bytes": wheel.stat().st_size}
        if not PEERS[name]:
            return numbers
        before = folder_bytes(folder / "venv")
        begin = time.monotonic()
        run(*pip, "install", "--quiet", name)
        taken = time.monotonic() - begin
    except (Failed, subprocess.SubprocessError) as problem:
        print(f"without {name}: pip cannot install it here ({str(problem).splitlines()[0]})")
        return None
    numbers |= {"install_seconds": taken, "installed_bytes": folder_bytes(folder / "venv") - before}
    command, live = PEERS[name]
    try:
        program = [folder / "venv" / command[0], *command[1:]]
        return {**numbers, **start_of(program, live, engine, runs)}
    except Failed as problem:
        print(f"without a start of {name}: {problem}")
        return numbers


def programs(options):
    """{name: numbers} of Fathom and its peers, each with the same mock engine behind it."""
    port = free_port()
    engine = f"http://127.0.0.1:{port}"
    with started([FATHOM, "mock", "--port", port, "--model", MODEL], "/") as mock:
        wait_for(mock, f"{engine}/health")
        found = {"fathom": start_of([FATHOM, "serve"], "/live", engine, options.runs)}
        if wheel := newest("build/wheel", f"*{platform.machine()}.whl"):
            with zipfile.ZipFile(wheel) as archive:
                installed = sum(entry.file_size for entry in archive.infolist())
            found["fathom"] |= {"file": wheel.name, "download_bytes": wheel.stat().st_size,
                                "installed_bytes": installed}
        for name in [] if options.smallest or options.no_peers else PEERS:
            if numbers := peer(name, engine, options.runs):
                found[name] = numbers
    if options.smallest:
        print("without other routers: no network with --smallest")
    return found


def show(results):
    for name, taken in results["installations"].items():
        print_table(f"from the {name} to the first answer", ["step", "time"],
                    [[step, seconds(value)] for step, value in taken.items()])
    print_table("sizes", ["artefact", "size"], [[name, megabytes(size)] for name, size in results["sizes"].items()])
    cells = [("download_bytes", megabytes), ("installed_bytes", megabytes), ("install_seconds", seconds),
             ("start_seconds", lambda value: f"{1000 * value:.0f} ms"), ("idle_bytes", megabytes)]
    print_table("programs", ["", "wheel", "installed", "pip install", "start", "idle memory"],
                [[name, *(form(numbers[key]) if key in numbers else "-" for key, form in cells)]
                 for name, numbers in results["programs"].items()])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15, help="starts of each program; their median is shown")
    parser.add_argument("--no-peers", action="store_true", help="measure Fathom alone, and download nothing for others")
    options = parse_arguments(parser, runs=1)
    require_binary()
    with tempfile.TemporaryDirectory(prefix="fathom-bench-install-") as name:
        results = {"installations": installations(options, Path(name)), "sizes": own_sizes(),
                   "programs": programs(options)}
    if not options.smallest and "wheel" in results["installations"]:
        results["programs"]["fathom"]["install_seconds"] = results["installations"]["wheel"]["install"]
    show(results)
    save("install", results, options.smallest)
    return 0


if __name__ == "__main__":
    run_main(main)
