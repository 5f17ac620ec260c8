"""The demonstration: router, workers and traffic in one process."""

import re

from conftest import run_fathom


def test_the_demo_runs_for_as_long_as_it_is_told_and_ends_well():
    done = run_fathom("demo", "--seconds", 2, "--workers", 2, "--concurrency", 4)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), "it shows nothing"
    assert "mock" in done.stdout


def test_follow_up_turns_reuse_what_their_worker_holds():
    """With sessions every later turn meets its own cache; the first never can."""
    done = run_fathom("demo", "--seconds", 4, "--concurrency", 4, "--think-time", "50ms",
                      "--speedup", 4, "--sessions")
    assert done.returncode == 0, done.stdout + done.stderr
    summary = done.stdout[done.stdout.index("fathom demo"):]
    reused = int(re.search(r"(\d+)% of prompt tokens", summary).group(1))
    assert reused > 30, summary


def test_the_demo_says_that_it_cannot_run_in_direct_mode():
    done = run_fathom("demo", "--seconds", 1, "--router-mode", "direct")
    assert done.returncode == 78
    assert "direct" in done.stderr
