"""tools/check_rooms and tools/check_words: the tree is clean, and each kind of offence is noticed."""

import shutil
import subprocess

import pytest
from conftest import ROOT


def check(tool, root=ROOT):
    """The offences that the tool finds in a tree."""
    done = subprocess.run([ROOT / "tools" / tool, root], text=True, capture_output=True, check=False)
    offences = done.stdout.splitlines()
    assert done.stderr == "" and done.returncode == (1 if offences else 0)
    return offences


@pytest.fixture(name="copy", scope="module")
def fixture_copy(tmp_path_factory):
    """A copy of what the tools look at. One, because to delete thousands of files takes long on some disks."""
    folder = tmp_path_factory.mktemp("tree")
    for part in ("src", "deploy/prometheus", "deploy/grafana"):
        shutil.copytree(ROOT / part, folder / part)
    return folder


def state(folder):
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(name="tree")
def fixture_tree(copy):
    """The copy, which is as it was after each test."""
    before = state(copy)
    yield copy
    after = state(copy)
    for path in after.keys() - before.keys():
        path.unlink()
    for path in (path for path in before if before[path] != after.get(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path.relative_to(copy), path)
    for folder in sorted((path for path in copy.rglob("*") if path.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()
    assert state(copy).keys() == before.keys()


def prepend(path, line):
    path.write_text(line + "\n" + path.read_text())


def replace(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_the_tree_is_clean():
    assert check("check_rooms") == []
    assert check("check_words") == []


@pytest.mark.parametrize("source, header, offence", [
    ("router/fleet/fleet.cc", "lab/mock/mock_server.h", "the wing 'router' may not include the wing 'lab'"),
    ("router/gateway/gateway.cc", "diagnose/doctor/probe.h",
     "the wing 'router' may not include the wing 'diagnose'"),
    ("diagnose/doctor/probe.cc", "lab/load/load.h", "the wing 'diagnose' may not include the wing 'lab'"),
    ("io/net/loop.cc", "router/fleet/fleet.h", "the wing 'io' may not include the wing 'router'"),
    ("base/log.cc", "io/net/loop.h", "the wing 'ground' may not include the wing 'io'"),
    ("io/net/loop_test.cc", "router/fleet/fleet.h", "the wing 'io' may not include the wing 'router'"),
    ("io/net/loop.cc", "testing/loop_thread.h", "only tests may include"),
    ("router/index/cache_index.cc", "router/gateway/gateway.h", "room 'index' does not name 'gateway'"),
    ("base/log.cc", "log.h", "is not a path from src/ into a room"),
])
def test_an_include_against_wings_or_rooms_is_an_offence(tree, source, header, offence):
    prepend(tree / "src" / source, f'#include "{header}"')
    (found,) = check("check_rooms", tree)
    assert found.startswith(f"src/{source}:1: ") and offence in found


def test_a_library_belongs_to_its_rooms(tree):
    prepend(tree / "src/router/fleet/fleet.cc", "#include <openssl/ssl.h>")
    assert check("check_rooms", tree) == ["src/router/fleet/fleet.cc:1: only room 'net' may include <openssl/ssl.h>"]


def test_a_use_that_nothing_makes_is_an_offence(tree):
    replace(tree / "src/CMakeLists.txt", "fathom_room(io/http HOT ROOMS base",
            "fathom_room(io/http HOT ROOMS base metrics")
    (found,) = check("check_rooms", tree)
    assert "room 'http' names 'metrics', but includes nothing of it" in found


def test_a_use_of_a_wing_below_is_an_offence_even_if_declared(tree):
    cmake = tree / "src/CMakeLists.txt"
    cmake.write_text(cmake.read_text() + "fathom_room(text/late ROOMS base mock)\n")
    (tree / "src/text/late").mkdir()
    (tree / "src/text/late/late.cc").write_text('#include "base/log.h"\n#include "lab/mock/mock_server.h"\n')
    found = "\n".join(check("check_rooms", tree))
    assert "room 'late' uses 'mock', but the wing 'text' may not use the wing 'lab'" in found


def test_a_folder_that_is_no_room_and_a_room_without_folder_are_offences(tree):
    (tree / "src/router/lost").mkdir()
    (tree / "src/router/lost/lost.cc").write_text("")
    (found,) = check("check_rooms", tree)
    assert found.startswith("src/router/lost: folder without a fathom_room")
    shutil.rmtree(tree / "src/router/lost")
    shutil.rmtree(tree / "src/lab/simulation")
    assert any("has no folder src/lab/simulation" in line for line in check("check_rooms", tree))


def test_two_rooms_have_no_type_of_one_name(tree):
    (tree / "src/text/tokens/again.h").write_text("struct CacheIndex {\n};\n")
    (found,) = check("check_rooms", tree)
    assert "'CacheIndex' is also the name of a type in" in found


@pytest.mark.parametrize("literal", [
    '"Nobody answers"', '"the worker is said to be gone"', 'R"(a line\nthat somebody wrote)"', '"mended"',
    '"a price that is too dear"',
])
def test_an_idiom_in_a_message_is_an_offence(tree, literal):
    source = tree / "src/router/fleet/planted.cc"
    source.write_text(f"void F() {{\n  Say({literal});\n}}\n")
    (found,) = check("check_words", tree)
    assert found.startswith("src/router/fleet/planted.cc:2: ")


@pytest.mark.parametrize("line", [
    "// nobody reads this", 'Say("a kindness");', 'Match("told");  // words: what release 0.1 wrote',
])
def test_comments_other_words_and_excused_literals_are_none(tree, line):
    (tree / "src/router/fleet/planted.cc").write_text(line + "\n")
    assert check("check_words", tree) == []


def test_an_idiom_in_an_alert_is_an_offence(tree):
    alerts = tree / "deploy/prometheus/fathom-alerts.yml"
    alerts.write_text(alerts.read_text() + "# nobody\nsummary: nobody\n")
    (found,) = check("check_words", tree)
    assert found.startswith("deploy/prometheus/fathom-alerts.yml:")
