// Which tokens does the prompt of this request have, and in which namespace?
//
//   prompt as ids          the client's ids; no query and no wait
//   prompt as text, chats  with the model's files: in this process, exactly; with images and the
//                          like, only the text before them (a prefix). Without files: from the
//                          cache; else an engine is asked, for `timeout`, or longer if the prompt
//                          is long: up to the time of its prefill, and kMostPatience; else the
//                          tokens of an earlier turn of the conversation, or those that all
//                          conversations with this first message begin with (a prefix); else none.
//                          The engine is asked, too, where its tokens differ from the files'
//   several prompts        the first one represents all of them
//   anything else          none
//
// Without tokens the text stands for them (router/gateway/prompt_text.h), in a namespace of its
// own. Without either a request is routed by load; that is counted and logged, and is never an
// error.
//
// Threads  One per loop.
// Memory   The tokens live as long as the PromptTokens; those of all prompts together have a
// budget.
//          Buffers for ids are reused.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/request_memory.h"
#include "io/net/task.h"
#include "router/fleet/engine_speed.h"
#include "router/fleet/fleet.h"
#include "router/fleet/token_parity.h"
#include "router/gateway/files_belief.h"
#include "router/gateway/gateway_metrics.h"
#include "router/gateway/local_tokenizer.h"
#include "router/gateway/prompt_text.h"
#include "router/gateway/prompt_watch.h"
#include "router/gateway/request_fields.h"
#include "router/gateway/token_complaints.h"
#include "router/gateway/token_desk.h"
#include "router/gateway/token_source.h"
#include "router/gateway/tokenize_metrics.h"
#include "router/gateway/tokenizer_builds.h"
#include "router/routing/steering.h"
#include "text/model/model_library.h"
#include "text/model/prefix_cache.h"
#include "text/model/token_cache.h"
#include "text/tokens/block_hash.h"

namespace fathom {

// Buffers that have already grown, for reuse.
//
// Memory  At most kKept buffers, and none that holds more than kLargest ids.
class SpareTokens {
 public:
  struct Return {
    SpareTokens* spare = nullptr;
    void operator()(std::vector<TokenId>* tokens) const { spare->Take(tokens); }
  };
  using Room = std::unique_ptr<std::vector<TokenId>, Return>;

  // An empty buffer. It must be destroyed before this object.
  Room Get();

 private:
  static constexpr size_t kKept = 64;
  static constexpr size_t kLargest = size_t{1} << 18;

  void Take(std::vector<TokenId>* tokens);

  std::vector<std::unique_ptr<std::vector<TokenId>>> kept_;
};

struct PromptTokens {
  RequestMemory::Share memory;
  std::span<const TokenId> tokens;  // in one of the two members below
  SharedTokens owner;
  SpareTokens::Room room;
  uint64_t seed = kKeySeed;  // of its namespace: adapter and cache salt
  TokensFrom from = TokensFrom::kNone;
  PromptKind kind = PromptKind::kChat;
  size_t prompt_tokens = 0;        // token count of the prompt; an estimate if the tokens are not
                                   // known
  std::optional<Inexact> inexact;  // why the model's files do not give all tokens
  std::optional<TokenFailure> failure;  // why the engines have not given them
  std::optional<UnreadReason> unread;   // why it has no tokens
  // Values of its text: in place of tokens, or, where some prompts of the model have none, beside
  // them, so that those find this one.
  std::span<const TokenId> text;
  SpareTokens::Room text_room;
  uint64_t text_seed = 0;
  bool text_whole = false;                   // nothing of the prompt is missing in them
  std::vector<PromptParts::Place> places;    // where prompts with a common beginning may diverge
  EngineKind engine = EngineKind::kUnknown;  // whose chat format was used
  KnownPrefix known;                         // the part that an earlier prompt has in common with
                                             // this one
};

struct TokenizeOptions {
  Duration timeout = std::chrono::milliseconds(250);  // 0: engines are never asked
  const EngineSpeed* speed = nullptr;                 // of the fleet; null: the usual one
  uint64_t secret = 0;  // seeds the cache's keys: random, and equal on all loops
  bool literal_user_text = false;
  bool by_text = false;  // prompts without tokens are routed by their text
};

// State that the readers of all loops share.
struct PromptShelves {
  const ModelLibrary& models;
  TokenCache& tokens;
  PrefixCache& prefixes;
  SideWork& side_work;
  TokenizeMetrics& metrics;
  TokenComplaints& complaints;
  RequestMemory& memory;  // of token ids, and of texts until their ids are known
  TokenizerBuilds& builds;
  const PromptWatch* watch = nullptr;   // null: texts are read only in place of tokens
  const ParityBoard* parity = nullptr;  // null: engines were not asked whether they agree
};

class PromptReader {
 public:
  PromptReader(const TokenizeOptions& options, Loop& loop, std::shared_ptr<TokenSource> source,
               const PromptShelves& shelves);

  // Unless `timeout` is longer.
  static constexpr Duration kMostPatience = std::chrono::seconds(2);
  // An image in the prompt has many bytes and few tokens, so estimates end here.
  static constexpr size_t kMostGuessed = 16384;

  // Fields, and the body that they point to, must stay valid until the task has ended. The result
  // must be destroyed before the reader.
  Task<PromptTokens> Read(const RequestFields& fields, Route route,
                          std::shared_ptr<const FleetSnapshot> fleet);

  // A prompt that continues a response: its beginning, of so many tokens, is with an engine alone.
  PromptTokens Continue(const RequestFields& fields, Route route, const FleetSnapshot& fleet,
                        uint32_t earlier) const;

  // Whether keeping the prompt's keys would help later prompts more than the kept prefix does.
  static bool HasMoreToKeep(const PromptTokens& prompt) {
    return !prompt.places.empty() && prompt.places.back().tokens > prompt.known.tokens;
  }
  // Keeps the computed keys for prompts with the same beginning.
  void Keep(const PromptTokens& prompt, PrefixKeys keys);

 private:
  // An earlier turn ends with the template's start of the answer, and the tokens at the end of a
  // text may change when more text follows.
  static constexpr size_t kUncertain = 16;

  // False: so many prompts are being read that this one is not.
  bool TakeMemory(uint64_t bytes, std::string_view model, PromptTokens& prompt);
  void ReadIds(std::string_view array, PromptTokens& prompt);
  void ReadByText(const PromptFields& parts, std::string_view model, PromptTokens& prompt);
  // The model's files, if they are used. Null: engines are asked.
  std::shared_ptr<const LanguageModel> FilesFor(const TokenQuestion& question, PromptKind kind);
  ParityVerdict VerdictOf(std::string_view model, PromptKind kind) const;
  // `literal`: user text never becomes a special token.
  Task<void> ReadText(const TokenQuestion& question, bool literal, PromptTokens& prompt);
  // Whether no engine of the model has the files' tokens for such prompts, and one can be asked.
  bool FilesDiffer(const TokenQuestion& question, bool literal, PromptKind kind) const;
  Task<void> ReadWithFiles(std::shared_ptr<const LanguageModel> model,
                           const TokenQuestion& question, bool literal, PromptTokens& prompt);
  Task<void> AskEngine(const TokenQuestion& question, PromptTokens& prompt);
  // How long a request with so many tokens waits for them.
  Duration PatienceFor(size_t tokens, Duration least) const;
  // Asks an engine of the model which build of its tokenizer it has.
  Task<void> AskForBuild(std::shared_ptr<const LanguageModel> model, const TokenQuestion& about);
  void UseEarlierTurn(const PromptKeys& keys, PromptTokens& prompt);
  bool UseBeginning(SharedTokens known, PromptTokens& prompt);
  void LearnBeginning(const PromptKeys& keys, const SharedTokens& tokens);

  const TokenizeOptions options_;
  Loop& loop_;
  const PromptShelves shelves_;
  ModelReader models_;
  LocalTokenizer local_;
  const std::shared_ptr<TokenSource> source_;
  const std::shared_ptr<TokenDesk> desk_;
  SpareTokens spare_;
  PromptTextReader texts_;
};

}  // namespace fathom
