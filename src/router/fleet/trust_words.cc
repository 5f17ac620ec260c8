#include "router/fleet/trust_words.h"

#include <fmt/format.h>

#include <utility>

#include "engine/publisher_flags.h"

namespace fathom {
namespace {

// By engine; the last one is for unidentified engines.
struct InTheirWords {
  std::string_view vllm;
  std::string_view sglang;
  std::string_view trtllm;
  std::string_view any;
};

std::string_view Say(const InTheirWords& words, EngineKind engine) {
  switch (engine) {
    case EngineKind::kVllm:
      return words.vllm;
    case EngineKind::kSglang:
      return words.sglang;
    case EngineKind::kTrtllm:
      return words.trtllm;
    case EngineKind::kUnknown:
      return words.any;
  }
  std::unreachable();
}

constexpr InTheirWords kPublish = {
    kVllmPublisherFlags, kSglangPublisherFlags,
    "kv_cache_config: {enable_block_reuse: true, event_buffer_max_size: 16384} in TensorRT-LLM's "
    "--config",
    "turn on the engine's KV events (--kv-events-config in vLLM and SGLang, "
    "event_buffer_max_size in TensorRT-LLM)"};

std::string HowToPublish(EngineKind engine) {
  constexpr InTheirWords kVerb = {"start vLLM with ", "start SGLang with ", "set ", ""};
  return fmt::format("{}{}", Say(kVerb, engine), Say(kPublish, engine));
}

constexpr InTheirWords kCaching = {
    "start vLLM without --no-enable-prefix-caching", "start SGLang without --disable-radix-cache",
    "set kv_cache_config: {enable_block_reuse: true} in TensorRT-LLM's --config",
    "turn on the engine's prefix caching"};

constexpr InTheirWords kReplay = {
    "give vLLM a \"replay_endpoint\" in --kv-events-config, and raise its \"buffer_steps\" and "
    "\"hwm\"",
    "give SGLang a \"replay_endpoint\" in --kv-events-config, and raise its \"buffer_steps\" and "
    "\"hwm\"",
    "raise event_buffer_max_size in TensorRT-LLM's kv_cache_config, or lower the router's "
    "--kv-events-poll-interval",
    "give the engine a replay endpoint (\"replay_endpoint\" in --kv-events-config)"};

constexpr InTheirWords kMemory = {
    "give vLLM's cache more memory (--gpu-memory-utilization, --kv-cache-dtype fp8), let fewer "
    "sequences run (--max-num-seqs), or add workers",
    "give SGLang's cache more memory (--mem-fraction-static), let fewer requests run "
    "(--max-running-requests), or add workers",
    "give TensorRT-LLM's cache more memory (kv_cache_config: free_gpu_memory_fraction), let fewer "
    "sequences run (max_batch_size), or add workers",
    "give the engine's cache more memory, or add workers"};

std::string Quoted(std::string_view piece) {
  constexpr size_t kMost = 40;
  std::string text = "'";
  for (const char c : piece.substr(0, kMost)) {
    if (c == '\n') {
      text += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      text += c;
    }
  }
  return text + "'";
}

std::string Token(const TrustScene& scene, const std::string& model, std::optional<TokenId> id) {
  if (!id) return "none (its prompt ends there)";
  const std::string piece = scene.pieces == nullptr ? "" : (*scene.pieces)(model, *id);
  return piece.empty() ? std::to_string(*id) : fmt::format("{} {}", *id, Quoted(piece));
}

std::string_view Requests(PromptSpace space) {
  switch (space) {
    case PromptSpace::kPlain:
      return "requests without adapter and cache_salt";
    case PromptSpace::kAdapter:
      return "requests with a LoRA adapter";
    case PromptSpace::kSalted:
      return "requests with a cache_salt";
  }
  std::unreachable();
}

std::string_view Prompts(PromptKind kind) {
  switch (kind) {
    case PromptKind::kIds:
      return "prompts sent as token ids";
    case PromptKind::kText:
      return "completions";
    case PromptKind::kChat:
      return "plain chats";
    case PromptKind::kMedia:
      return "chats with media";
    case PromptKind::kDeveloper:
      return "chats with the role developer";
    case PromptKind::kTools:
      return "chats with tools";
    case PromptKind::kOptions:
      return "chats with template options";
    case PromptKind::kMessages:
      return "requests to /v1/messages";
    case PromptKind::kResponses:
      return "requests to /v1/responses";
  }
  std::unreachable();
}

// "plain chats, chats with tools"
std::string AllPrompts(const TokenDifference& e) {
  std::string all;
  for (size_t i = 0; i < kPromptKinds; ++i) {
    if (!e.kinds[i]) continue;
    if (!all.empty()) all += ", ";
    all += Prompts(static_cast<PromptKind>(i));
  }
  return all.empty() ? std::string(Prompts(e.kind)) : all;
}

// --- no_events: at which step does it fail?

TrustWords SilentBecause(const TrustScene& scene) {
  const std::string fix = HowToPublish(scene.engine);
  if (scene.feed == nullptr) {
    switch (scene.problem.kind) {
      case NoFeed::kPublisherOff:  // its report came from a page of one engine alone
        return {"the engine reports that its publisher is off",
                scene.engine == EngineKind::kUnknown ? scene.problem.text : fix};
      case NoFeed::kDialsOut:
        return {"the engine connects its publisher to an address instead of binding it",
                scene.problem.text};
      case NoFeed::kOther:
        return {scene.problem.text, fix};
      case NoFeed::kNone:
        return {"the address of its KV events is unknown", fix};
    }
  }
  const std::string& source = scene.feed->source;
  if (scene.feed->connected.load(std::memory_order_relaxed)) {
    if (scene.feed->stray_messages.Get() > 0) {
      return {fmt::format("{} is connected, but its messages are not KV events", source),
              "give the engine's publisher a port of its own"};
    }
    return {fmt::format("{} is connected, but no events arrive", source),
            fmt::format("compare the topic (kv_events_topic in the worker's entry) with the "
                        "engine's; if they are the same, {}",
                        fix)};
  }
  switch (scene.feed->reach.load(std::memory_order_relaxed)) {
    case FeedReach::kRefused:
      return {fmt::format("nothing listens at {}", source),
              fmt::format("{}; if it publishes at another port, name it in the worker's entry "
                          "(kv_events: tcp://HOST:PORT) or with --kv-events-port",
                          fix)};
    case FeedReach::kTimeout:
      return {fmt::format("connecting to {} times out", source),
              "open that port between the router and the worker (firewall, network policy, a "
              "container port that is not published)"};
    case FeedReach::kUnresolved:
      return {fmt::format("the host of {} cannot be resolved", source),
              "name an endpoint that the router can resolve in the worker's entry (kv_events: "
              "tcp://HOST:PORT)"};
    case FeedReach::kOpen:
      return {fmt::format("{} accepts connections, but is not a ZeroMQ publisher", source),
              "name the publisher's port in the worker's entry (kv_events: tcp://HOST:PORT)"};
    case FeedReach::kUnknown:
      return {fmt::format("{} is not connected", source), fix};
  }
  std::unreachable();
}

class Explainer {
 public:
  explicit Explainer(const TrustScene& scene) : scene_(scene) {}

  TrustWords operator()(std::monostate) const { return {}; }

  TrustWords operator()(const Silence& e) const {
    TrustWords words = SilentBecause(scene_);
    if (e.reported) return words;
    words.evidence = fmt::format(
        "{} requests that must leave blocks in its cache over {:.0f} s, but {} KV event arrived; "
        "{}",
        e.requests, Seconds(e.over), e.heard_before ? "no new" : "no", words.evidence);
    return words;
  }

  TrustWords operator()(const CacheUnused& e) const {
    const std::string fix(Say(kCaching, scene_.engine));
    if (e.reported) return {"the engine reports that its prefix caching is off", fix};
    return {fmt::format("{} requests began with a prefix that it had computed before, and it "
                        "reported 0 cached tokens each time",
                        e.repeats),
            fix};
  }

  TrustWords operator()(const TokenDifference& e) const {
    TrustWords words = DifferenceIn(e);
    if (!e.others_agree) return words;
    words.evidence =
        fmt::format("only {} differ: {}; other prompts agree", AllPrompts(e), words.evidence);
    if (e.kind != PromptKind::kText) words.fix = CureOfOneKind(e);
    return words;
  }

  TrustWords operator()(const UnknownGroups& e) const {
    return {fmt::format("{} cache groups have reuse rules that Fathom does not support", e.groups),
            "only the blocks of the other groups count; update Fathom, or run the model without "
            "these groups"};
  }

  TrustWords operator()(const LostBatches& e) const {
    return {fmt::format("{} event batches were lost in {} gaps, {} were recovered by replay; the "
                        "rank's index entries were cleared",
                        e.lost, e.gaps, e.repaired),
            std::string(Say(kReplay, scene_.engine))};
  }

  TrustWords operator()(const LateEvents& e) const {
    return {
        fmt::format("its events arrive {:.1f} s late ({}); the limit is {:.1f} s", Seconds(e.lag),
                    e.after_first_byte ? "from an answer's first byte to its stored blocks"
                                       : "by the engine's clock",
                    Seconds(e.limit)),
        "look for a slow network or an overloaded router between the engine's publisher and "
        "the index; --event-lag-limit sets the limit"};
  }

  TrustWords operator()(const PredictionDrift& e) const {
    const bool some = e.space != PromptSpace::kPlain && (e.others_fine || e.more);
    TrustWords words;
    words.evidence =
        fmt::format("{}: in the last {}, {} tokens were predicted to be cached, {} were found{}",
                    some ? Requests(e.space) : "all requests", e.requests, e.predicted, e.cached,
                    some ? "; other requests match their predictions" : "");
    if (some) {
      words.fix = e.more ? "its events omit the LoRA adapter or the cache_salt, or the engine "
                           "shares blocks that the router keeps separate: use a release whose "
                           "events include both"
                         : "the engine keeps blocks separate that its events do not distinguish: "
                           "use a release whose events include the LoRA adapter and the "
                           "cache_salt";
    } else {
      words.fix =
          "the engine evicts blocks without an event, or another cache tier is in use: check its "
          "release, its KV connector, and the removals in `fathom listen`";
    }
    return words;
  }

  TrustWords operator()(const Churn& e) const {
    return {fmt::format("{} of {} repeated tokens in {} requests had been evicted; {:.0f} blocks "
                        "stored per minute, {:.0f} removed; a block stays cached {:.0f} s",
                        e.evicted, e.evicted + e.reused, e.requests, e.stores, e.removals,
                        Seconds(e.lifetime)),
            std::string(Say(kMemory, scene_.engine))};
  }

 private:
  using Likely = TokenDifference::Likely;

  TrustWords DifferenceIn(const TokenDifference& e) const {
    if (e.probed) return DifferenceInProbe(e);
    if (!e.located) {
      return {fmt::format("its events contain other tokens than those of {} requests", e.requests),
              "give the router the model files that the engine uses (--model-path), and do not "
              "give the engine a different chat template"};
    }
    const bool one_kind = e.others_agree && e.kind != PromptKind::kText;
    return {fmt::format("at position {} of a prompt the engine computed token {}, the router "
                        "expected {}; {} requests in a row differ; likely cause: {}",
                        e.position, Token(scene_, e.model, e.theirs),
                        Token(scene_, e.model, e.ours), e.requests,
                        one_kind ? "the engine prepares these prompts in another way"
                                 : LikelyCause(e.likely)),
            Cure(e.likely)};
  }

  // Before any request; so it has cost nothing yet.
  TrustWords DifferenceInProbe(const TokenDifference& e) const {
    const bool one_kind = e.others_agree && e.kind != PromptKind::kText;
    const std::string_view cause =
        one_kind ? "the engine prepares these prompts in another way" : LikelyCause(e.likely);
    if (!e.located) {
      return {fmt::format("in a probe prompt of {}, sent when the worker joined, the engine counts "
                          "{} tokens, the router {}; likely cause: {}",
                          Prompts(e.kind), e.their_count, e.our_count, cause),
              Cure(e.likely)};
    }
    return {fmt::format("at position {} of a probe prompt of {}, sent when the worker joined, the "
                        "engine has token {}, the router {}; likely cause: {}",
                        e.position, Prompts(e.kind), Token(scene_, e.model, e.theirs),
                        Token(scene_, e.model, e.ours), cause),
            Cure(e.likely)};
  }

  static std::string CureOfOneKind(const TokenDifference& e) {
    if (e.kind == PromptKind::kMedia) {
      return "only the engine knows the tokens of media: these requests are routed by load, others "
             "are not affected";
    }
    return fmt::format(
        "other requests are not affected; for {}: compare `fathom tokenize` with "
        "the engine's /tokenize for one such request, update the older of the two, "
        "or run the router without --model-path, so that the engine tokenizes",
        AllPrompts(e));
  }

  static std::string_view LikelyCause(Likely likely) {
    switch (likely) {
      case Likely::kTemplate:
        return "a different chat template";
      case Likely::kExtraFirst:
        return "the engine adds a first token (BOS)";
      case Likely::kMissingFirst:
        return "the engine omits the first token (BOS)";
      case Likely::kVocabulary:
        return "a different vocabulary";
    }
    std::unreachable();
  }

  std::string Cure(Likely likely) const {
    switch (likely) {
      case Likely::kTemplate:
        return std::string(Say({"start vLLM without --chat-template, or give the router the same "
                                "template (chat_template of tokenizer_config.json in "
                                "--model-path)",
                                "start SGLang without --chat-template, or give the router the "
                                "same template (chat_template of tokenizer_config.json in "
                                "--model-path)",
                                "give the router the template that TensorRT-LLM uses "
                                "(chat_template of tokenizer_config.json in --model-path)",
                                "give the router and the engine the same chat template"},
                               scene_.engine));
      case Likely::kExtraFirst:
      case Likely::kMissingFirst:
        return "give the router the tokenizer files that the engine uses (--model-path): "
               "add_bos_token and the post-processor must be the same";
      case Likely::kVocabulary:
        return "give the router the tokenizer files of the model that the engine runs "
               "(--model-path, --tokenizer-path)";
    }
    std::unreachable();
  }

  const TrustScene& scene_;
};

}  // namespace

TrustWords WordsOf(const Evidence& evidence, const TrustScene& scene) {
  return std::visit(Explainer(scene), evidence);
}

}  // namespace fathom
