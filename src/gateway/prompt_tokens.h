// Which tokens does the prompt of this request have, and in which namespace do they lie?
//
//   prompt as ids          what the client sent; nobody is asked and nothing is waited for
//   prompt as text, chats  with the model's files: in this process, exactly; of images and the like
//                          the text before them (a prefix). Without: from the cache; else an engine
//                          is asked, for at most `timeout`; else what an earlier turn of the
//                          conversation had (a prefix); else nothing
//   several prompts        the first one speaks for all of them
//   anything else          nothing
//
// Without tokens a request is routed by load; that is counted and logged, and never an error.
//
// Threads  One per loop.
// Memory   The tokens live as long as the PromptTokens. Room for ids is used again and again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fleet/fleet.h"
#include "gateway/gateway_metrics.h"
#include "gateway/local_tokenizer.h"
#include "gateway/request_fields.h"
#include "gateway/token_complaints.h"
#include "gateway/token_desk.h"
#include "gateway/token_source.h"
#include "gateway/tokenize_metrics.h"
#include "model/model_library.h"
#include "model/prefix_cache.h"
#include "model/token_cache.h"
#include "net/task.h"
#include "routing/steering.h"
#include "tokens/block_hash.h"

namespace fathom {

// Vectors that have been grown already, for whoever needs one next.
//
// Memory  At most kKept of them, and none that holds more than kLargest ids.
class SpareTokens {
 public:
  struct Return {
    SpareTokens* spare = nullptr;
    void operator()(std::vector<TokenId>* tokens) const { spare->Take(tokens); }
  };
  using Room = std::unique_ptr<std::vector<TokenId>, Return>;

  // Empty. Must be gone before this object is.
  Room Get();

 private:
  static constexpr size_t kKept = 64;
  static constexpr size_t kLargest = size_t{1} << 18;

  void Take(std::vector<TokenId>* tokens);

  std::vector<std::unique_ptr<std::vector<TokenId>>> kept_;
};

struct PromptTokens {
  std::span<const TokenId> tokens;  // in one of the two below
  SharedTokens owner;
  SpareTokens::Room room;
  uint64_t seed = kKeySeed;  // of its namespace: adapter and cache salt
  TokensFrom from = TokensFrom::kNone;
  size_t prompt_tokens = 0;        // how many the prompt has; a guess where they are not known
  std::optional<Inexact> inexact;  // why the model's files do not give all of them
  std::vector<PromptParts::Place> places;    // where prompts that begin alike may part
  EngineKind engine = EngineKind::kUnknown;  // whose way of preparing chats was followed
  KnownPrefix known;                         // what such a prompt has left
};

struct TokenizeOptions {
  Duration timeout = std::chrono::milliseconds(250);  // 0: no engine is ever asked
  uint64_t secret = 0;  // seeds the cache's keys: random, and the same on all loops
  bool literal_user_text = false;
};

// What the readers of all loops share.
struct PromptShelves {
  const ModelLibrary& models;
  TokenCache& tokens;
  PrefixCache& prefixes;
  SideWork& side_work;
  TokenizeMetrics& metrics;
  TokenComplaints& complaints;
};

class PromptReader {
 public:
  PromptReader(const TokenizeOptions& options, Loop& loop, std::shared_ptr<TokenSource> source,
               const PromptShelves& shelves);

  // An image in the prompt has many bytes and few tokens: nothing is guessed to be longer.
  static constexpr size_t kMostGuessed = 16384;

  // Fields, and the body that they point to, must stay until the task has ended. The result must be
  // gone before the reader is.
  Task<PromptTokens> Read(const RequestFields& fields, Route route,
                          std::shared_ptr<const FleetSnapshot> fleet);

  // Whether others that begin alike would find less than could be kept now.
  static bool HasMoreToKeep(const PromptTokens& prompt) {
    return !prompt.places.empty() && prompt.places.back().tokens > prompt.known.tokens;
  }
  // Keeps what was computed of the prompt, for them.
  void Keep(const PromptTokens& prompt, PrefixKeys keys);

 private:
  // At the end of an earlier turn stands what asks for its answer, and text may be cut into tokens
  // differently when more of it follows.
  static constexpr size_t kUncertain = 16;

  void ReadIds(std::string_view array, PromptTokens& prompt);
  // `literal`: what users write never becomes a special token.
  Task<void> ReadText(const TokenQuestion& question, bool literal, PromptTokens& prompt);
  Task<void> ReadWithFiles(std::shared_ptr<const LanguageModel> model,
                           const TokenQuestion& question, bool literal, PromptTokens& prompt);
  Task<void> AskEngine(const TokenQuestion& question, PromptTokens& prompt);
  void UseEarlierTurn(const PromptKeys& keys, PromptTokens& prompt);

  const TokenizeOptions options_;
  Loop& loop_;
  const PromptShelves shelves_;
  LocalTokenizer local_;
  const std::shared_ptr<TokenSource> source_;
  const std::shared_ptr<TokenDesk> desk_;
  SpareTokens spare_;
};

}  // namespace fathom
