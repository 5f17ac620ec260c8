// The real engine as judge: what a running vLLM was asked is asked of the core, and it must find as
// much in its cache and publish the same blocks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "codec/json.h"
#include "lab/mock/engine_core.h"

namespace fathom {
namespace {

// A block event by content: 's' or 'r' and a hash of all tokens from the beginning of the prompt.
using Happening = std::pair<char, uint64_t>;

// Names blocks by what they hold, whoever hashed them.
class ContentNames {
 public:
  uint64_t Store(std::optional<uint64_t> parent, uint64_t hash, std::span<const TokenId> tokens,
                 std::string_view salt) {
    const uint64_t seed = parent ? names_.at(*parent) : XXH3_64bits(salt.data(), salt.size());
    return names_[hash] = XXH3_64bits_withSeed(tokens.data(), tokens.size_bytes(), seed);
  }
  uint64_t Of(uint64_t hash) const { return names_.at(hash); }

 private:
  std::map<uint64_t, uint64_t> names_;
};

void StoreAll(ContentNames& names, const std::vector<uint64_t>& hashes,
              std::optional<uint64_t> parent, const std::vector<TokenId>& tokens, size_t block_size,
              std::string_view salt, std::vector<Happening>& out) {
  for (size_t i = 0; i < hashes.size(); ++i) {
    const std::span<const TokenId> block(tokens.data() + i * block_size, block_size);
    out.emplace_back('s', names.Store(parent, hashes[i], block, salt));
    parent = hashes[i];
  }
}

struct RecordedCall {
  std::string note;
  std::string url;
  double start = 0;
  double end = 0;
  std::vector<TokenId> prompt;  // empty: not recorded
  std::vector<TokenId> answer;
  uint32_t max_tokens = 0;
  std::string salt;
  std::optional<uint64_t> cached;
  std::optional<uint64_t> rank;
};

std::vector<TokenId> TokensOf(const Json* json) {
  std::vector<TokenId> tokens;
  if (json == nullptr || json->array() == nullptr) return tokens;
  for (const Json& token : *json->array()) {
    tokens.push_back(static_cast<TokenId>(*token.unsigned_integer()));
  }
  return tokens;
}

std::string StringOf(const Json* json) {
  return json != nullptr && json->string() != nullptr ? *json->string() : "";
}

class Capture {
 public:
  explicit Capture(const std::string& name) {
    std::ifstream file("tests/captures/" + name + ".json");
    std::stringstream text;
    text << file.rdbuf();
    auto json = Json::Parse(text.str());
    EXPECT_TRUE(json) << name;
    json_ = *std::move(json);
    for (const Json& call : *json_.Find("calls")->array()) calls.push_back(ReadCall(call));
  }

  const RecordedCall& Named(std::string_view note) const {
    return *std::find_if(calls.begin(), calls.end(),
                         [&](const RecordedCall& c) { return c.note == note; });
  }

  // What the server published between two moments.
  std::vector<Happening> Published(double from, double until, ContentNames& names) const {
    std::vector<Happening> out;
    for (const Json& batch : *json_.Find("batches")->array()) {
      const double t = *batch.Find("t")->number();
      if (t < from || t >= until) continue;
      for (const Json& event : *batch.Find("events")->array()) ReadEvent(event, names, out);
    }
    return out;
  }

  std::vector<RecordedCall> calls;

 private:
  static RecordedCall ReadCall(const Json& json) {
    RecordedCall call{.note = StringOf(json.Find("note")), .url = StringOf(json.Find("url"))};
    call.start = *json.Find("t_start")->number();
    call.end = *json.Find("t_end")->number();
    call.prompt = TokensOf(json.Find("prompt"));
    call.answer = TokensOf(json.Find("answer"));
    call.salt = StringOf(json.Find("salt"));
    const auto number = [&](std::string_view key) -> std::optional<uint64_t> {
      const Json* const value = json.Find(key);
      return value == nullptr ? std::nullopt : value->unsigned_integer();
    };
    call.max_tokens = static_cast<uint32_t>(number("max_tokens").value_or(1));
    call.cached = number("cached_tokens");
    call.rank = number("rank");
    return call;
  }

  static std::vector<uint64_t> Hashes(const Json& event) {
    std::vector<uint64_t> hashes;
    for (const Json& hash : *event.Find("hashes")->array()) {
      hashes.push_back(*hash.unsigned_integer());
    }
    return hashes;
  }

  static void ReadEvent(const Json& event, ContentNames& names, std::vector<Happening>& out) {
    const std::string type = StringOf(event.Find("type"));
    if (type == "removed") {
      for (const uint64_t hash : Hashes(event)) out.emplace_back('r', names.Of(hash));
    } else if (type == "stored") {
      const Json* const parent = event.Find("parent");
      std::string salt;
      if (const Json* extra = event.Find("extra_keys");
          extra != nullptr && extra->array() != nullptr) {
        const Json& first = extra->array()->front();
        if (first.array() != nullptr) salt = StringOf(&first.array()->front());
      }
      StoreAll(names, Hashes(event), parent->unsigned_integer(), TokensOf(event.Find("tokens")),
               *event.Find("block_size")->unsigned_integer(), salt, out);
    }
  }

  Json json_;
};

// Puts the calls of a capture to a core, and remembers what it said.
class Subject {
 public:
  explicit Subject(uint32_t blocks)
      : profile_(*TimingProfile::Named("polynomial")),
        core_({.block_size = 32, .num_blocks = blocks, .max_num_batched_tokens = 2048}, *profile_) {
  }

  EngineCore& core() { return core_; }

  // The first a step before the others, as the server met those that were sent together; until the
  // last one is answered. The cached tokens of each.
  std::vector<uint64_t> Ask(std::span<const RecordedCall> calls) {
    std::map<SequenceId, uint64_t> cached;
    EngineStep step;
    const auto advance = [&] {
      if (!core_.Step(step)) return false;
      Take(step.events);
      for (const EngineOutput& output : step.outputs) {
        cached[output.sequence] = output.cached_tokens;
      }
      return true;
    };
    for (const RecordedCall& call : calls) {
      EngineRequest request{.prompt = call.prompt,
                            .max_tokens = call.max_tokens,
                            .salt = call.salt,
                            .answer = call.answer};
      cached[*core_.Submit(std::move(request))] = 0;
      if (&call == calls.data()) advance();
    }
    while (advance()) {
    }
    std::vector<uint64_t> in_order;  // ids grow
    for (const auto& [id, tokens] : cached) in_order.push_back(tokens);
    return in_order;
  }

  std::vector<Happening> TakePublished() { return std::exchange(published_, {}); }

 private:
  void Take(const std::vector<KvEvent>& events) {
    for (const KvEvent& event : events) {
      if (const auto* stored = std::get_if<BlocksStored>(&event)) {
        StoreAll(names_, stored->hashes, stored->parent, stored->tokens, stored->block_size,
                 stored->salt, published_);
      } else if (const auto* removed = std::get_if<BlockRemoved>(&event)) {
        published_.emplace_back('r', names_.Of(removed->hash));
      }
    }
  }

  std::unique_ptr<TimingProfile> profile_;
  EngineCore core_;
  ContentNames names_;
  std::vector<Happening> published_;
};

// Asks one call after the other and compares the cached tokens of each.
void AskEach(Subject& subject, std::span<const RecordedCall> calls) {
  for (const RecordedCall& call : calls) {
    if (call.url.starts_with("/reset_prefix_cache")) {
      EXPECT_TRUE(subject.core().ResetPrefixCache()) << call.note;
      continue;
    }
    ASSERT_FALSE(call.prompt.empty()) << call.note;
    EXPECT_EQ(subject.Ask({&call, 1}).front(), call.cached) << call.note;
  }
}

constexpr double kEver = 1e300;

TEST(VllmCapture, SharedPrefixesAreFoundAndPublishedInTheSameOrder) {
  const Capture capture("vllm-0.32-bs32.a_prefixes");
  Subject subject(33);
  AskEach(subject, capture.calls);
  ContentNames names;
  EXPECT_EQ(subject.TakePublished(), capture.Published(0, kEver, names));
}

TEST(VllmCapture, ChatTurnsFindWhatTheTurnsBeforeLeft) {
  const Capture capture("vllm-0.32-bs32.f_chat");
  const double unknown = capture.Named("chat streaming turn 1 again").start;
  const auto known = std::span(capture.calls).first(5);
  Subject subject(33);
  AskEach(subject, known);
  ContentNames names;
  EXPECT_EQ(subject.TakePublished(), capture.Published(0, unknown, names));
}

// The calls that were made before another one.
std::span<const RecordedCall> Before(const Capture& capture, const RecordedCall& call) {
  const auto count = std::count_if(capture.calls.begin(), capture.calls.end(),
                                   [&](const RecordedCall& c) { return c.start < call.start; });
  return std::span(capture.calls).first(static_cast<size_t>(count));
}

TEST(VllmCapture, EvictionsHappenInTheSameOrder) {
  const Capture capture("vllm-0.32-bs32.b_eviction");
  const RecordedCall& concurrent = capture.Named("concurrent 0");
  Subject subject(33);
  AskEach(subject, Before(capture, concurrent));
  ContentNames names;
  EXPECT_EQ(subject.TakePublished(), capture.Published(0, concurrent.start, names));
}

// Four requests of 240 + 120 tokens do not fit together: the server preempted twice. In which order
// concurrent requests store their blocks is not recorded, so these are judged as multisets.
TEST(VllmCapture, ConcurrentRequestsAreSharedAndPreemptedAlike) {
  const Capture capture("vllm-0.32-bs32.b_eviction");
  const RecordedCall& first = capture.Named("concurrent 0");
  const RecordedCall& identical = capture.Named("identical concurrent 0");
  const auto before = Before(capture, first);
  const auto calls = std::span(capture.calls).subspan(before.size());
  Subject subject(33);
  AskEach(subject, before);
  subject.TakePublished();
  ContentNames names;
  capture.Published(0, first.start, names);

  EXPECT_THAT(subject.Ask(calls.first(4)), testing::Each(0u));
  EXPECT_EQ(subject.core().counters().preemptions, 2u);
  EXPECT_THAT(subject.TakePublished(), testing::UnorderedElementsAreArray(
                                           capture.Published(first.start, identical.start, names)));

  std::vector<uint64_t> reported;
  for (const RecordedCall& call : calls.subspan(4)) reported.push_back(*call.cached);
  EXPECT_THAT(subject.Ask(calls.subspan(4)), testing::UnorderedElementsAreArray(reported));
  EXPECT_THAT(subject.TakePublished(),
              testing::UnorderedElementsAreArray(capture.Published(identical.start, kEver, names)));
}

TEST(VllmCapture, AResetForgetsEverything) {
  const Capture capture("vllm-0.32-bs32.c_reset");
  // It follows b_eviction on the same server, whose last content is unknown; the first reset ends
  // that. The long running request's tokens were not recorded.
  const RecordedCall& reset = capture.Named("reset idle");
  const RecordedCall& unknown = capture.Named("long running");
  const auto calls = Before(capture, unknown).subspan(1);
  Subject subject(33);
  AskEach(subject, calls);
  ContentNames names;
  Capture("vllm-0.32-bs32.b_eviction").Published(0, kEver, names);
  capture.Published(0, reset.start, names);
  EXPECT_EQ(subject.TakePublished(), capture.Published(reset.start, unknown.start, names));
}

TEST(VllmCapture, ARestartedEngineStartsEmpty) {
  const Capture capture("vllm-0.32-bs32.d_restart");
  const RecordedCall& restarted = capture.Named("first request after restart, same prompt");
  Subject subject(33);
  AskEach(subject, std::span(capture.calls).subspan(2));
  ContentNames names;
  EXPECT_EQ(subject.TakePublished(), capture.Published(restarted.start, kEver, names));
}

TEST(VllmCapture, OneOfTwoCopiesIsEvictedAndTheOtherStillHits) {
  const Capture capture("vllm-0.32-duplicates.j_duplicate_eviction");
  const RecordedCall& too_long = capture.Named("longer than the pool");
  Subject subject(9);
  AskEach(subject, Before(capture, too_long));
  ContentNames names;
  EXPECT_EQ(subject.TakePublished(), capture.Published(0, kEver, names));
  EXPECT_FALSE(subject.core().Submit({.prompt = std::vector<TokenId>(32 * 9), .max_tokens = 1}));
}

// Where a call without the header went is not recorded, so each rank is judged up to the first of
// those, and again after the reset.
TEST(VllmCapture, RanksHaveCachesOfTheirOwn) {
  for (const uint64_t rank : {0, 1}) {
    const Capture capture("vllm-0.32-dp2.rank" + std::to_string(rank));
    const RecordedCall& unsteered = capture.Named("no header 0");
    const RecordedCall& reset = capture.Named("reset");
    Subject subject(33);
    ContentNames names;
    const auto ask = [&](double from, double until) {
      for (const RecordedCall& call : capture.calls) {
        if (call.rank == rank && call.start >= from && call.start < until && call.cached) {
          AskEach(subject, {&call, 1});
        }
      }
    };
    ask(0, unsteered.start);
    EXPECT_EQ(subject.TakePublished(), capture.Published(0, unsteered.start, names)) << rank;
    capture.Published(unsteered.start, reset.start, names);
    EXPECT_TRUE(subject.core().ResetPrefixCache());
    ask(reset.end, kEver);
    EXPECT_EQ(subject.TakePublished(), capture.Published(reset.end, kEver, names)) << rank;
  }
}

}  // namespace
}  // namespace fathom
