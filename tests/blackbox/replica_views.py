"""What the routers of a group see of each other."""

import json

from conftest import run_fathom
from wire import eventually


def rows(router):
    return {row["id"]: row for row in router.health()["replicas"]}


def carrier(router):
    return router.health()["replica_carrier"]


def busy(router):
    """Requests in flight by replica, as this router sees it."""
    return {name: row["requests"] for name, row in rows(router).items()}


def placed(router):
    """What each replica has placed, as this router sees it: requests, and tokens of their prefill."""
    return {name: (row["requests"], row["prefill_tokens"]) for name, row in rows(router).items()}


def ranks(router):
    """{url: (last event, blocks)} of the index."""
    return {rank["url"]: (rank["last_sequence"], rank["blocks"]) for rank in
            router.get("/debug/index").json()["ranks"]}


def findings(router):
    """What the doctor finds in the group: {id: evidence}."""
    ran = run_fathom("doctor", "--url", router.url, "--format", "json")
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    return {finding["id"]: finding["evidence"][0] for finding in json.loads(ran.stdout)["findings"]
            if "replica" in finding["id"]}


def meet(*routers):
    """All hear all."""
    def all_hear():
        views = [rows(router) for router in routers]
        return all(len(view) == len(routers) and all(row["hears_us"] for row in view.values()) for view in views)
    eventually(all_hear, "all replicas hear each other")


def know_workers(count, *routers):
    """All have told all that they can route to so many workers, which they do once per second."""
    meet(*routers)
    eventually(lambda: all(row["workers"] == count for router in routers for row in rows(router).values()),
               f"all have told of {count} workers")


def come_to_rest(*routers):
    """Everything that anybody has placed is over, in everybody's view, exactly."""
    def at_rest():
        return all(mine == (0, 0) for router in routers for mine in placed(router).values())
    eventually(at_rest, "all sums are zero")
