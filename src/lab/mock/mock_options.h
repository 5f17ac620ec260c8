// How a mock engine behaves, and what it has been through.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "lab/mock/kv_event.h"
#include "lab/mock/prefix_ledger.h"
#include "lab/mock/prompt_fault.h"
#include "lab/mock/response_store.h"

namespace fathom {

enum class MockedEngine : uint8_t { kVllm, kSglang, kTrtllm };

// How long requests take: those that are not simulated are answered each at its own pace.
constexpr std::string_view kPaced = "paced";

// What KV events do not tell, though the engine knows it.
enum class EventOmission : uint8_t {
  kNone,
  kRemovals,  // that a block has left the cache
  kSalt,      // that prompts of different salts are kept apart
  kLora,      // that prompts for different adapters are kept apart
};

// What a simulated engine tells about its caches. Ports are the first rank's; the others have those
// after it.
struct KvEventOptions {
  bool on = false;
  std::string wire;          // EventWire's version; empty: the newest
  bool byte_hashes = false;  // instead of integers
  std::string topic;
  std::string host = "127.0.0.1";  // that sockets are bound on; MockServer fills in its own
  uint16_t port = 0;               // 0: a free one
  std::optional<uint16_t> replay_port = 0;  // 0: a free one; nothing: no replay
  std::string connect;                      // publishes there instead of binding a port
  size_t buffer_steps = 10000;              // batches to replay, or events to be polled

  // Faults.
  uint64_t drop_every = 0;  // the Nth batch is not published; 0: none
  uint64_t lose_every = 0;  // the Nth batch is neither published nor replayed; 0: none
  Duration delay{};         // everything is so late
  bool silent = false;      // nothing is published, nor replayed
  EventOmission omission = EventOmission::kNone;
  uint32_t block_size_label = 0;    // claimed instead of the true one; 0: the true one
  uint64_t restart_after = 0;       // batches; 0: never
  uint32_t restart_block_size = 0;  // tokens per block from then on; 0: as before
};

struct MockOptions {
  std::string name;  // what its answers say; MockServer fills in "mock-<port>" if empty
  MockedEngine engine = MockedEngine::kVllm;
  std::vector<std::string> models = {"mock-model"};
  std::vector<std::string> loras;  // adapters of the first model
  // Makes prompts and answers tokens; null: the mock's own, which needs no files.
  std::shared_ptr<const LanguageModel> language_model;
  std::string reasoning_parser;  // SGLang's, for thoughts in /v1/messages; empty: none
  std::string api_key;           // asked for on /v1/* unless empty
  uint64_t tokens = 32;          // of an answer whose request sets no limit

  // What answers tell about tokens.
  bool cached_tokens_report = true;  // how many were found in the cache, where there is one
  bool force_usage = false;          // in streams, also to those who did not ask
  bool usage_with_choices = false;   // in streams, not in an event of its own

  // The simulation. Any profile but kPaced makes one.
  std::string profile{kPaced};  // a name that TimingProfile knows, or kPaced
  double speedup = 1;           // the steps of the engine take 1/speedup of their time
  uint32_t block_size = 0;      // tokens; 0: the engine's own default
  uint32_t num_blocks = 0;      // per rank; 0: about kDefaultCapacity tokens
  uint32_t max_num_seqs = 256;
  uint32_t max_num_batched_tokens = 8192;
  uint32_t dp_size = 1;              // ranks, each with its own scheduler and cache
  bool iteration_statistics = true;  // TensorRT-LLM: kept for GET /metrics
  bool prefix_caching = true;
  KvEventOptions kv_events;
  // What was computed before, shared with other engines; null: MockServer makes one of its own.
  std::shared_ptr<PrefixLedger> ledger;
  // What /v1/responses has answered; null: MockServer makes one of its own.
  std::shared_ptr<ResponseStore> responses;
  // Hears what a step did to the cache of a rank, when the step is over, on the server's thread.
  std::function<void(size_t rank, const std::vector<KvEvent>&)> on_kv_events;

  // What is not simulated.
  Duration first_token_delay = std::chrono::milliseconds(50);
  Duration token_interval = std::chrono::milliseconds(10);
  size_t chunk_bytes = 0;  // every token is padded to this length

  // Faults. Those up to `busy` concern POST /v1/* only.
  double fail_rate = 0;             // share of requests answered with 500
  double hang_rate = 0;             // share of requests never answered
  uint64_t die_after_tokens = 0;    // the connection is reset after so many; 0: never
  uint64_t abort_after_tokens = 0;  // finish_reason "abort" after so many, as a vLLM that is
                                    // stopped; 0: never
  bool drain_abort = false;         // finish_reason "abort" and no tokens, as a draining vLLM
  bool abort_running = false;       // what is being answered ends now, with finish_reason "abort"
  bool busy = false;                // 503
  bool refuse = false;              // every connection is closed at once
  Duration slow_start{};            // GET /health answers 503 for so long
  std::optional<uint32_t> block_size_report;  // on its pages, instead of the true one; 0: none
  Duration report_delay{};                    // those pages are so late
  Duration tokenize_delay{};                  // answers to /tokenize, while requests are running
  bool tell_prefix_caching = true;            // on those pages
  bool prefix_caching_was_off = false;        // they tell that it is on, where they would not have
  PromptFault prompt_fault = PromptFault::kNone;
  uint64_t seed = 1;  // of the dice for the rates, and of the words of answers
};

constexpr uint64_t kDefaultCapacity = 262144;  // tokens
constexpr uint64_t kMostContext = 131072;      // tokens of a prompt and its answer

bool IsAdapter(const MockOptions& options, std::string_view model);
uint32_t BlockSizeOf(const MockOptions& options);
uint32_t NumBlocksOf(const MockOptions& options);
// What it says about itself: what fits one rank's cache, and no more than kMostContext.
uint64_t MaxModelLength(const MockOptions& options);

// Requests are POST /v1/*; each ends as exactly one of completed, failed and cancelled. Shared by
// the engines of one server, read by anybody: plain counts that order nothing else.
struct MockCounts {
  std::atomic<uint64_t> requests{0};
  std::atomic<uint64_t> in_flight{0};
  std::atomic<uint64_t> completed{0};
  std::atomic<uint64_t> failed{0};     // answered with an error, or broken off on purpose
  std::atomic<uint64_t> cancelled{0};  // the client left first

  // Completions of texts and chats, by the form that their prompt came in.
  std::atomic<uint64_t> ids_prompts{0};
  std::atomic<uint64_t> text_prompts{0};
  std::atomic<uint64_t> chat_prompts{0};
  // Questions for tokens, or for the text of a prompt, on whatever path, answered or not.
  std::atomic<uint64_t> tokenize_calls{0};
  std::atomic<uint64_t> response_calls{0};  // about responses that it may have
};

}  // namespace fathom
