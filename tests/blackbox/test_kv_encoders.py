"""KV events written by an independent encoder, in the way of every release: each sample of the
wire format byte for byte, and the life of a few blocks in each dialect."""

import struct
import time

import msgpack
import pytest

from kv_engine import (BLOCK, CLEARED, REMOVED, STORED, Stable, batch, chain, positional, prompt_of,
                       removed, stored)

TOKENS = list(range(1, 14))  # three blocks, and the token that is always computed


@pytest.fixture(scope="module")
def router(shared_world):
    return shared_world.serve("--block-size-conflict", "mixed")


@pytest.fixture
def rank(router):
    """Of a fresh worker, which cannot replay."""
    stable = Stable(router)
    yield stable.rank(replay=False)
    stable.end()


def say(rank, payload):
    """Publishes, and waits until it is understood."""
    rank.publisher.send(payload)
    return rank.catch_up()


def is_clean(state):
    """Nothing was left out."""
    return not any(state[count] for count in ("malformed_batches", "malformed_events",
                                              "ignored_events", "stray_messages", "gaps"))


# --- samples, byte for byte: tokens 1 to 8, block size 4, rank 0

VLLM_STORED = bytes.fromhex(
    "93cb41d954fc40200000918ba474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657392cf84b1"
    "46b151d55111cfd43b57df56b58fb1b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f6964739801"
    "02030405060708aa626c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e"
    "616d65c0aa65787472615f6b65797392c0c0a967726f75705f69647800b26b765f63616368655f737065635f6b69"
    "6e64ae66756c6c5f617474656e74696f6e00")
VLLM_REMOVED = bytes.fromhex(
    "93cb41d954fc402000009184a474797065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391cfd4"
    "3b57df56b58fb1a66d656469756da3475055a967726f75705f6964780000")
VLLM_CLEARED = bytes.fromhex(
    "93cb41d954fc402000009181a474797065b0416c6c426c6f636b73436c656172656400")
VLLM_0_22_ALL = bytes.fromhex(
    "93cb41d954fc40200000939cab426c6f636b53746f72656492cf84b146b151d55111cfd43b57df56b58fb1c09801"
    "0203040506070804c0a3475055c092c0c000ae66756c6c5f617474656e74696f6ec094ac426c6f636b52656d6f76"
    "656491cfd43b57df56b58fb1a34750550091b0416c6c426c6f636b73436c656172656400")
VLLM_0_10_STORED = bytes.fromhex(
    "93cb41d954fc402000009197ab426c6f636b53746f72656491cf84b146b151d55111c0940102030404c0a3475055"
    "00")
VLLM_REMOVED_BYTES = bytes.fromhex(
    "93cb41d954fc402000009184a474797065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391c420"
    "e1bc29393a2da9fd798f35ff04d215f846aee6df4b803ce3d43b57df56b58fb1a66d656469756da3475055a96772"
    "6f75705f6964780000")
SGLANG_BOTH = bytes.fromhex(
    "93cb41d954fc402000009297ab426c6f636b53746f72656492d3cf97adeedb59e05bcf4ebfa8a1f3c34151c09801"
    "0203040506070804c0a347505593ac426c6f636b52656d6f76656491cf4ebfa8a1f3c34151a347505500")
SGLANG_SALTED = bytes.fromhex(
    "93cb41d954fc402000009198ab426c6f636b53746f72656491d3cf97adeedb59e05bc0940102030404c0a3475055"
    "81aa63616368655f73616c74a2743100")
SGLANG_PAIRS = bytes.fromhex(
    "93cb41d954fc402000009197ab426c6f636b53746f72656491d3f721fe42aac11dcbc09492010292020392030492"
    "040504c0a347505500")


def test_sample_of_vllm_today(rank):
    say(rank, VLLM_STORED)
    assert [rank.lookup(TOKENS[:n]) for n in (4, 5, 8, 9, 13)] == [0, 4, 4, 8, 8]
    say(rank, VLLM_REMOVED)
    assert rank.lookup(TOKENS) == 4
    state = say(rank, VLLM_CLEARED)
    assert (rank.lookup(TOKENS), state["blocks"]) == (0, 0)
    assert is_clean(state), state


def test_sample_of_vllm_0_22(rank):
    state = say(rank, VLLM_0_22_ALL)
    assert (rank.lookup(TOKENS), state["blocks"]) == (0, 0)
    assert (state["stored_blocks"], state["clears"]) == (2, 1)
    assert is_clean(state), state


def test_sample_of_vllm_0_10(rank):
    state = say(rank, VLLM_0_10_STORED)
    assert rank.lookup(TOKENS) == 4
    assert is_clean(state), state


def test_sample_with_a_hash_of_bytes_names_the_block_that_the_integer_named(rank):
    say(rank, VLLM_STORED)
    state = say(rank, VLLM_REMOVED_BYTES)
    assert rank.lookup(TOKENS) == 4
    assert is_clean(state) and state["unknown_removed"] == 0, state


def test_sample_of_sglang(rank):
    state = say(rank, SGLANG_BOTH)
    assert rank.lookup(TOKENS) == 4
    assert is_clean(state), state


def test_sample_of_sglang_with_a_salt(rank):
    state = say(rank, SGLANG_SALTED)
    assert rank.lookup(TOKENS, salt="t1") == 4
    assert (rank.lookup(TOKENS), rank.lookup(TOKENS, salt="t2")) == (0, 0)
    assert is_clean(state), state


def test_sample_of_sglang_with_pairs_of_tokens(rank):
    state = say(rank, SGLANG_PAIRS)
    assert rank.lookup(TOKENS[:6]) == 4
    assert rank.lookup([1, 2, 3, 4, 99, 6]) == 0, "the last pair of the page is another one"
    assert rank.lookup([1, 2, 3, 4, 5, 99]) == 4
    assert is_clean(state), state


# --- every release

# Elements of a positional store and removal, and of the batch around them.
ARRAYS = {"vllm 0.9.0": (6, 2, 2), "vllm 0.9.1": (6, 2, 3), "vllm 0.10.2": (7, 3, 3),
          "vllm 0.14": (8, 3, 3), "vllm 0.17": (9, 3, 3), "vllm 0.20": (10, 4, 3),
          "vllm 0.22": (12, 4, 3), "sglang 0.4.6": (6, 2, 2), "sglang 0.5.6": (6, 2, 3),
          "sglang 0.5.9": (7, 3, 3)}
# Keys of a store and a removal.
STORED_24 = STORED[:-1]
SGLANG_STORED = ["type", "block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id",
                 "medium"]
MAPS = {"vllm 0.24": (STORED_24, REMOVED), "vllm 0.26": (STORED_24 + ["locality"],
                                                          REMOVED + ["locality"]),
        "vllm 0.32": (STORED_24 + ["session_id", "ownership", "locality"], REMOVED),
        "sglang 0.5.23": (SGLANG_STORED, REMOVED[:3]),
        "trtllm stream": (SGLANG_STORED + ["lora_name", "mm_keys"], REMOVED[:3])}
MORE = {"locality": "LOCAL", "session_id": "a session", "ownership": ["x", 1, None], "mm_keys": []}

HASHES = {
    "small": [1, 2, 3],
    "unsigned": [0x84b146b151d55111, 0xd43b57df56b58fb1, 0xffffffffffffffff],
    "signed": [-3488128144981237669, 5674439469042975057, -1],
    "bytes32": [bytes([i]) * 32 for i in (1, 2, 3)],
    "bytes16": [bytes([i]) * 16 for i in (1, 2, 3)],
}


def hash_forms(release):
    engine, version = release.split()
    if engine != "vllm":
        return ["signed"]
    with_bytes = version not in ("0.9.0", "0.9.1")
    return ["small", "unsigned"] + (["bytes32", "bytes16"] if with_bytes else [])


def as_release(release, event):
    if release in ARRAYS:
        length, removal, _ = ARRAYS[release]
        return positional(event, length if event["type"] == "BlockStored" else removal)
    if event["type"] == "AllBlocksCleared":
        return event
    keys = MAPS[release][event["type"] == "BlockRemoved"]
    values = {**MORE, **event}
    return {key: values[key] for key in keys}


def encode(release, *events):
    envelope = [time.time(), [as_release(release, event) for event in events], 0]
    return msgpack.packb(envelope[:ARRAYS[release][2]] if release in ARRAYS else envelope)


def life_of_three_blocks(rank, encoded, names):
    first, second, third = names
    say(rank, encoded(stored([first, second], TOKENS[:8])))
    assert rank.lookup(TOKENS) == 8
    say(rank, encoded(stored([third], TOKENS[8:12], parent=second)))
    assert rank.lookup(TOKENS) == 12
    assert rank.lookup(TOKENS[:4] + [99] + TOKENS[5:]) == 4
    say(rank, encoded(removed([third]), stored([third], TOKENS[8:12], parent=second),
                      stored([third], TOKENS[8:12], parent=second)))
    say(rank, encoded(removed([third])))
    assert rank.lookup(TOKENS) == 12, "there was a second copy"
    say(rank, encoded(removed([third]), removed([first])))
    assert rank.lookup(TOKENS) == 0, "the second block is there, but not the first"
    say(rank, encoded(stored([first], TOKENS[:4])))
    assert rank.lookup(TOKENS) == 8
    state = say(rank, encoded(CLEARED, CLEARED, stored([third], TOKENS[:4])))
    assert rank.lookup(TOKENS) == 4
    assert is_clean(state) and state["unknown_removed"] == 0, state


@pytest.mark.parametrize("release,form", [
    (release, form) for release in [*ARRAYS, *MAPS] for form in hash_forms(release)])
def test_the_life_of_blocks_in_the_words_of(rank, release, form):
    life_of_three_blocks(rank, lambda *events: encode(release, *events), HASHES[form])


def widest(value):
    """Every number, text and list with the longest header there is."""
    if value is None or isinstance(value, bool):
        return msgpack.packb(value)
    if isinstance(value, int):
        return b"\xd3" + struct.pack(">q", value) if value < 0 else \
            b"\xcf" + struct.pack(">Q", value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        return b"\xdb" + struct.pack(">I", len(value.encode())) + value.encode()
    if isinstance(value, list):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(widest, value))
    items = (widest(key) + widest(item) for key, item in value.items())
    return b"\xdf" + struct.pack(">I", len(value)) + b"".join(items)


def test_numbers_may_be_wider_than_they_need_to_be(rank):
    life_of_three_blocks(rank, lambda *events: widest([time.time(), list(events), 0]), [1, 2, -3])


def test_a_number_is_the_same_in_every_width_and_sign(rank):
    say(rank, batch(stored([1, -1], TOKENS[:8])))
    assert rank.lookup(TOKENS) == 8
    state = say(rank, batch(removed([(1 << 64) - 1])))
    assert rank.lookup(TOKENS) == 4
    say(rank, widest([time.time(), [removed([1])], 0]))
    assert rank.lookup(TOKENS) == 0
    assert state["unknown_removed"] == 0


def test_zero_is_a_hash_like_any_other(rank):
    say(rank, batch(stored([1, 0], TOKENS[:8]), stored([(1 << 64) - 1], TOKENS[8:12], parent=0)))
    assert rank.lookup(TOKENS) == 12
    say(rank, batch(removed([0])))
    assert rank.lookup(TOKENS) == 4
    say(rank, batch(stored([0], TOKENS[4:8], parent=1), removed([1])))
    assert rank.lookup(TOKENS) == 0
    state = say(rank, batch(stored([1], TOKENS[:4])))
    assert rank.lookup(TOKENS) == 12
    assert (state["copies"], state["unknown_removed"], state["conflicts"]) == (0, 0, 0), state


def test_what_later_releases_add_is_skipped(rank):
    event = positional(stored([1, 2], TOKENS[:8]), 12) + ["new", {"deep": [1, [2, {"x": b"y"}]]}]
    say(rank, batch(event, ["BlockPolished", [1]], {"type": "BlockPolished", "x": 1}))
    assert rank.lookup(TOKENS) == 8
    nested = {"future": {"a": [1.5, None, b"x"]}, 7: "a key that is no text"}
    say(rank, msgpack.packb([1.0, [{**nested, **removed([2]), "more": 1}], 0]))
    assert rank.lookup(TOKENS) == 4
    say(rank, msgpack.packb([1, [["BlockRemoved", [1], "GPU", 0, "new"]], 0, "new"]))
    assert rank.lookup(TOKENS) == 0


def test_a_map_may_have_any_order(rank):
    event = stored([1, 2], TOKENS[:8])
    say(rank, batch(dict(reversed(list(event.items())))))
    assert rank.lookup(TOKENS) == 8


def test_placeholders_of_offloading_say_nothing(rank):
    empty = stored([77], [], block_size=0, medium="CPU", extra_keys=None)
    say(rank, batch(chain(1, 2), empty, removed([77], medium="CPU"), chain(2, 1)))
    assert rank.lookup(prompt_of(1, 3)) == 8
    assert rank.lookup(prompt_of(2, 3)) == 4


def test_a_copy_in_host_memory_is_not_the_copy_on_the_device(rank):
    say(rank, batch(chain(1, 2), chain(1, 2, medium="CPU")))
    say(rank, batch(removed([1000, 1001], medium="CPU")))
    assert rank.lookup(prompt_of(1, 3)) == 8
    say(rank, batch(removed([1000, 1001])))
    assert rank.lookup(prompt_of(1, 3)) == 0


@pytest.mark.parametrize("window_first", [True, False])
def test_a_sliding_window_may_leave_out_a_block_in_the_middle(rank, window_first):
    """As vLLM publishes hybrid models: the window's event has all tokens, and some of the blocks."""
    tokens = prompt_of(1, 5)
    window = stored([3, 4, 5, 6], tokens, kv_cache_spec_kind="sliding_window",
                    kv_cache_spec_sliding_window=2 * BLOCK)
    full = stored([3, 4, 7, 5, 6], tokens, group_idx=1)
    state = say(rank, batch(*((window, full) if window_first else (full, window))))
    assert is_clean(state) and state["orphans"] == 0, state
    # The window needs two blocks before the place where a prompt goes on; of the third there is none.
    longer = prompt_of(1, 6)
    assert [rank.lookup(longer[:blocks * BLOCK + 1]) for blocks in range(1, 6)] == [4, 8, 8, 8, 20]


def test_a_batch_may_be_empty(rank):
    say(rank, batch(chain(1, 2)))
    state = say(rank, batch())
    assert rank.lookup(prompt_of(1, 3)) == 8
    assert is_clean(state), state


# --- namespaces


def test_a_salt_keeps_prompts_apart(rank):
    extra = [["salt-1"], None]
    say(rank, batch(stored([1, 2], TOKENS[:8], extra_keys=extra)))
    say(rank, batch(stored([3], TOKENS[8:12], parent=2)))  # the salt stands in block 0 only
    assert rank.lookup(TOKENS, salt="salt-1") == 12
    assert (rank.lookup(TOKENS), rank.lookup(TOKENS, salt="salt-2")) == (0, 0)
    say(rank, batch(stored([4], TOKENS[:4])))
    assert (rank.lookup(TOKENS), rank.lookup(TOKENS, salt="salt-1")) == (4, 12)


def test_an_adapter_keeps_prompts_apart(rank):
    say(rank, batch(stored([1, 2], TOKENS[:8], lora_id=1, lora_name="ada",
                           extra_keys=[["ada"], ["ada"]])))
    say(rank, batch(stored([3], TOKENS[8:12], parent=2, lora_id=1, lora_name="ada",
                           extra_keys=[["ada"]])))
    assert rank.lookup(TOKENS, lora="ada") == 12
    assert (rank.lookup(TOKENS), rank.lookup(TOKENS, lora="bob")) == (0, 0)
    assert rank.lookup(TOKENS, salt="ada") == 0


def test_an_adapter_with_a_salt(rank):
    extra = [["ada", "S"], ["ada"]]
    say(rank, batch(stored([1, 2], TOKENS[:8], lora_name="ada", extra_keys=extra)))
    assert rank.lookup(TOKENS, lora="ada", salt="S") == 8
    assert rank.lookup(TOKENS, lora="ada") == 0
    assert rank.lookup(TOKENS, salt="S") == 0
    assert rank.lookup(TOKENS) == 0


def test_an_adapter_that_vllm_0_14_names_beside_the_blocks(rank):
    event = stored([1, 2], TOKENS[:8], lora_id=1, lora_name="ada")
    say(rank, batch(positional(event, 8)))
    assert (rank.lookup(TOKENS, lora="ada"), rank.lookup(TOKENS)) == (8, 0)


def test_an_adapter_that_has_only_a_number_is_not_the_base_model(rank):
    say(rank, batch(positional(stored([1, 2], TOKENS[:8], lora_id=3), 6)))
    assert rank.lookup(TOKENS) == 0
    assert rank.state()["blocks"] == 2


def test_an_image_is_not_its_placeholder_tokens(rank):
    say(rank, batch(stored([1, 2], TOKENS[:8], extra_keys=[None, [["image-hash", 0]]])))
    assert rank.lookup(TOKENS) == 4


def test_sglang_names_the_salt_beside_the_blocks(rank):
    keys = {key: stored([-1, 2], TOKENS[:8])[key] for key in SGLANG_STORED}
    say(rank, batch({**keys, "cache_salt": "s1"}))
    child = {**keys, "block_hashes": [3], "parent_block_hash": 2, "token_ids": TOKENS[8:12]}
    say(rank, batch({**child, "cache_salt": "s1"}))
    assert rank.lookup(TOKENS, salt="s1") == 12
    assert rank.lookup(TOKENS) == 0


def pairs(tokens):
    return [list(pair) for pair in zip(tokens, tokens[1:])]


@pytest.mark.parametrize("form", ["array", "map"])
def test_pages_of_pairs(rank, form):
    def page(names, tokens, parent=None):
        event = stored(names, pairs(tokens), parent)
        return positional(event, 7) if form == "array" else \
            {key: event[key] for key in SGLANG_STORED}
    say(rank, batch(page([1, 2], TOKENS[:9])))
    assert rank.lookup(TOKENS[:10]) == 8
    say(rank, batch(page([3], TOKENS[8:13], parent=2)))
    assert rank.lookup(TOKENS + [14]) == 12
    say(rank, batch(removed([2])))
    assert rank.lookup(TOKENS + [14]) == 4


def test_block_sizes_live_side_by_side(router, rank):
    stable = Stable(router)
    large = stable.rank(replay=False)
    say(rank, batch(stored([1, 2, 3], TOKENS[:12])))
    say(large, batch(stored([1], TOKENS[:6], block_size=6)))
    assert (rank.lookup(TOKENS), large.lookup(TOKENS)) == (12, 6)
    assert (rank.state()["block_size"], large.state()["block_size"]) == (BLOCK, 6)
    stable.end()
