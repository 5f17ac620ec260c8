"""A tokenizer whose class would build another pipeline than its file has: the engine is asked once which one it uses,
and the router takes the same."""

import json

import pytest

from choices import cached, decision_of, found
from model_fleet import complete, counted, engine, router_of
from tokenizers import model_folder, tokenizer_config
from wire import eventually


def folder_with(folder, **changes):
    folder.mkdir()
    (folder / "tokenizer.json").symlink_to(model_folder("yi") / "tokenizer.json")
    (folder / "tokenizer_config.json").write_text(json.dumps({**tokenizer_config("yi"), **changes}))
    return folder


@pytest.mark.vocabulary
@pytest.mark.parametrize("their_class, build", [("PreTrainedTokenizerFast", "tokenizer.json"), ("LlamaTokenizer", "class")])
def test_the_router_takes_the_build_that_its_engines_have(world, tmp_path, their_class, build):
    ours = folder_with(tmp_path / "ours")
    theirs = folder_with(tmp_path / "theirs", tokenizer_class=their_class)
    workers = [engine(world, "vllm", None, model_path=theirs) for _ in range(2)]
    router = router_of(world, workers, "--model-path", ours)
    for number in range(3):
        prompt = f"Sounding {number}: how deep is it at the buoy, and how deep at the reef? " * 4
        complete(router, prompt)

        def known():
            answer = complete(router, prompt)
            assert decision_of(router, answer)["tokens_from"] == "files"
            return cached(answer) == found(answer) > 0

        eventually(known, "the engine's blocks are found by the router's tokens")
    eventually(lambda: f'build="{build}"' in router.log_text() or f"build={build}" in router.log_text(), "the choice is logged")
    assert counted(workers, "tokenize_calls") == 0, "it was asked when it joined"
    eventually(lambda: router.metric("kv_router_rank_doubt") == 0, "an engine that was compared before the choice is compared again")
