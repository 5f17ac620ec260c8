"""The demonstration: router, workers and traffic in one process."""

from conftest import run_fathom


def test_the_demo_runs_for_as_long_as_it_is_told_and_ends_well():
    done = run_fathom("demo", "--seconds", 2, "--workers", 2, "--concurrency", 4)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), "it shows nothing"
    assert "mock" in done.stdout
