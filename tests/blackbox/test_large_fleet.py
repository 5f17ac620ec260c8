"""A fleet of more candidates than a decision lists. One mock answers at many loopback addresses, and
each of them is a worker of its own."""

from choices import QUICK, complete, decision_of, explain, follow, ids, seed

A, B, C = ids(1), ids(2), ids(3)
MANY = 47


def test_a_decision_lists_who_holds_the_prompt_and_the_best_few_others(mock, serve):
    holder, crowd = mock(**QUICK), mock(**QUICK, host="0.0.0.0")
    others = [f"http://127.1.0.{i}:{crowd.port}" for i in range(1, MANY + 1)]
    router = serve(workers=[holder, *others])
    follow(router, MANY + 1)
    seed(router, holder, A + B)

    answer = complete(router, A + B + C)
    assert answer.worker == router.worker_id(holder)
    for decision in (decision_of(router, answer), explain(router, A + B + ids(4))):
        best, *rest = decision["candidates"]
        assert best["url"] == holder.url and best["cached_tokens"] == len(A + B)
        assert 1 <= len(rest) <= 8 and all(c["cached_tokens"] == 0 for c in rest)
        assert decision["places"] == MANY + 1 == len(rest) + 1 + decision["others"]["count"]
        assert decision["others"]["lowest_cost"] >= decision["cost"] + decision["margin"]
        assert len({c["position"] for c in decision["candidates"]}) == len(rest) + 1


def test_requests_spread_over_all_workers_of_an_idle_fleet(mock, serve):
    crowd = mock(host="0.0.0.0")
    router = serve("--kv-events", "off", workers=[f"http://127.1.0.{i}:{crowd.port}"
                                                  for i in range(1, MANY + 1)])
    chosen = {complete(router, ids(100 + n)).worker for n in range(4 * MANY)}
    assert len(chosen) > MANY * 3 // 4
