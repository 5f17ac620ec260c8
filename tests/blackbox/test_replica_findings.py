"""What the doctor finds in a group of routers that run."""

import pytest

from conftest import run_fathom
from replica_mesh import Mesh
from replica_views import findings, know_workers, meet, rows
from wire import eventually


class Pair:
    """Two routers that are well, with two workers."""

    def __init__(self, world):
        self.mesh = Mesh(world, names="abcd")
        self.workers = [world.mock() for _ in range(2)]
        self.routers = [self.mesh.start(name, workers=self.workers) for name in "ab"]
        know_workers(2, *self.routers)


@pytest.fixture(scope="module")
def pair(shared_world):
    return Pair(shared_world)


def test_nothing_is_found_in_a_group_that_is_well(pair):
    assert [findings(router) for router in pair.routers] == [{}, {}]


def test_a_router_with_another_key_is_alone(pair, tmp_path):
    other_key = tmp_path / "other.key"
    other_key.write_bytes(b"quite another key, as long as this")
    alone = pair.mesh.start("c", workers=pair.workers, key_file=other_key)
    eventually(lambda: alone.metric("fathom_replica_messages_dropped_total", reason="key") > 0, "it hears the others")
    found = findings(alone)
    assert found.keys() == {"replica-alone"} and "only c is in group fathom" in found["replica-alone"]
    said = run_fathom("doctor", "--url", alone.url).stdout
    assert "--replica-key-file" in said and "fathom docs replica-alone" in said
    assert [findings(router) for router in pair.routers] == [{}, {}]
    alone.kill()


def test_routers_with_different_workers_are_named(pair):
    a, b = pair.routers
    other = pair.mesh.start("d", workers=pair.workers[:1])
    meet(a, b, other)
    eventually(lambda: rows(a)["d"]["workers"] == 1 and rows(other)["a"]["workers"] == 2, "all have told of them")
    found = findings(a)
    assert found.keys() == {"replicas-differ"} and "a has 2 workers" in found["replicas-differ"]
    assert "d has 1" in found["replicas-differ"]
    found = findings(other)
    assert found.keys() == {"replicas-differ"} and "d has 1 workers" in found["replicas-differ"]
    other.kill()
    know_workers(2, a, b)
    assert findings(a) == {}
