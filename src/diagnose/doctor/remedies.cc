#include "diagnose/doctor/remedies.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

namespace fathom {
namespace {

// vLLM, SGLang, TensorRT-LLM, any other engine.
using ByEngine = std::array<std::string_view, 4>;

std::string_view For(EngineKind engine, const ByEngine& texts) {
  switch (engine) {
    case EngineKind::kVllm:
      return texts[0];
    case EngineKind::kSglang:
      return texts[1];
    case EngineKind::kTrtllm:
      return texts[2];
    case EngineKind::kUnknown:
      break;
  }
  return texts[3];
}

constexpr std::string_view kRestart = "a restart of the engine, which empties its cache";
constexpr std::string_view kRouterRestart = "a restart of the router; engines keep their caches";

constexpr ByEngine kPublisher = {
    R"(--enable-prefix-caching --kv-events-config '{"enable_kv_cache_events": true, "publisher": "zmq", "endpoint": "tcp://*:5557", "replay_endpoint": "tcp://*:5657"}')",
    R"(--kv-events-config '{"publisher": "zmq", "endpoint": "tcp://*:5557", "replay_endpoint": "tcp://*:5657"}')",
    "kv_cache_config:\n  enable_block_reuse: true\n  event_buffer_max_size: 16384",
    "vLLM, SGLang: --kv-events-config; TensorRT-LLM: kv_cache_config.event_buffer_max_size"};

constexpr ByEngine kReplay = {R"("replay_endpoint": "tcp://*:5657" in --kv-events-config)",
                              R"("replay_endpoint": "tcp://*:5657" in --kv-events-config)",
                              "kv_cache_config:\n  event_buffer_max_size: 16384",
                              R"("replay_endpoint": "tcp://*:5657" in --kv-events-config)"};

constexpr ByEngine kCaching = {"--enable-prefix-caching", "(leave out --disable-radix-cache)",
                               "kv_cache_config:\n  enable_block_reuse: true",
                               "the engine's prefix caching"};

constexpr ByEngine kMoreMemory = {"--gpu-memory-utilization 0.95", "--mem-fraction-static 0.9",
                                  "kv_cache_config:\n  free_gpu_memory_fraction: 0.95",
                                  "the engine's share of GPU memory"};

constexpr ByEngine kSmallerValues = {"--kv-cache-dtype fp8", "--kv-cache-dtype fp8_e4m3",
                                     "kv_cache_config:\n  dtype: fp8", "an 8-bit KV cache"};

constexpr ByEngine kFewerSequences = {"--max-num-seqs", "--max-running-requests", "max_batch_size",
                                      "the number of sequences at once"};

constexpr ByEngine kOffload = {"--kv-offloading-backend native --kv-offloading-size 64",
                               "--enable-hierarchical-cache --hicache-size 64",
                               "kv_cache_config:\n  host_cache_size: 64000000000",
                               "host memory for evicted blocks"};

// vLLM evicts what was used least recently, and has no other rule.
constexpr ByEngine kEvictionPolicy = {
    "", "--radix-eviction-policy lfu",
    "KvCacheRetentionConfig of a request: a priority above 35 for the tokens to keep", ""};

constexpr ByEngine kEngineBlockSize = {"--block-size {}", "--page-size {}",
                                       "kv_cache_config:\n  tokens_per_block: {}",
                                       "the engine's block size: {}"};

Fix Make(std::string what, std::string_view setting, std::string_view cost, std::string verify) {
  return {.what = std::move(what),
          .setting = std::string(setting),
          .diff = {},
          .cost = std::string(cost),
          .verify = std::move(verify)};
}

constexpr std::string_view kIndexGrows =
    "the index grows under traffic: kv_router_feed_blocks of Fathom, `tree size` in Dynamo's "
    "scheduler lines; follow-up turns have cached blocks";

Fix SetRouterSize(const Patient& p) {
  if (p.router == RouterKind::kFathom) {
    return Make("Remove the block size from the router: it asks the engines",
                "(leave out --kv-cache-block-size, FATHOM_KV_CACHE_BLOCK_SIZE and "
                "DYN_KV_CACHE_BLOCK_SIZE)",
                kRouterRestart, std::string(kIndexGrows));
  }
  if (p.engine_block_size == 0) {
    return Make(
        "Set the router's block size to the engine's: by default vLLM 16, TensorRT-LLM 32, SGLang "
        "1",
        "DYN_KV_CACHE_BLOCK_SIZE=32  # TensorRT-LLM; vLLM 16, SGLang 1", kRouterRestart,
        std::string(kIndexGrows));
  }
  const std::string size = fmt::format("{}", p.engine_block_size);
  return Make(fmt::format("Set the router's block size to the engine's: {}", size),
              fmt::format("DYN_KV_CACHE_BLOCK_SIZE={}", size), kRouterRestart,
              std::string(kIndexGrows));
}

Fix SetEngineSize(const Patient& p) {
  const std::string size =
      p.router_block_size == 0 ? "SIZE" : fmt::format("{}", p.router_block_size);
  return Make(fmt::format("Set the engine's block size to the router's: {}", size),
              fmt::format(fmt::runtime(For(p.engine, kEngineBlockSize)), size),
              "a restart of the engine, which empties its cache; some attention backends do not "
              "support every size",
              std::string(kIndexGrows));
}

Fix AllowBothSizes() {
  return Make("Allow both sizes behind Fathom, which then must have no block size set",
              "--block-size-conflict mixed", kRouterRestart,
              "GET /health: every worker is ready, each with its own block_size");
}

// The size of one engine on the router would lose the others.
std::vector<Fix> ForDividedEngines(const Patient& p) {
  std::vector<Fix> fixes = {SetEngineSize(p)};
  if (p.router == RouterKind::kFathom) fixes.push_back(AllowBothSizes());
  return fixes;
}

// For symptoms whose usual cause is a block size.
std::vector<Fix> ForRefusedEvents(const Patient& p) {
  if (p.router == RouterKind::kFathom) {
    return {Make("Read the cause and the fix of each rank that is not trusted",
                 "curl -s ROUTER/health | jq '.workers[].ranks[] | {trust, cause, evidence, fix}'",
                 "none", std::string(kIndexGrows))};
  }
  std::vector<Fix> fixes;
  if (p.router == RouterKind::kDynamo) fixes.push_back(SetRouterSize(p));
  fixes.push_back(Make(
      "Compare the block sizes of router and engine: a mismatch is the usual cause",
      "fathom doctor --logs LOG --manifest FILE --worker URL", "none", std::string(kIndexGrows)));
  return fixes;
}

// What tells a route that was wrong from an engine that does not keep what it computed.
std::vector<Fix> ForSlowFollowUps(const Patient& p) {
  return {
      Make("Compare the decisions of a first turn and of its follow-up: other workers mean that "
           "the router does not see the caches, the same worker means that the engine keeps "
           "nothing",
           "curl -s ROUTER/debug/decisions | jq '.decisions[:2]'", "none",
           "follow-up turns go to the worker of the first turn, with cached tokens above 0"),
      Make("Turn prefix caching on in the engine", For(p.engine, kCaching), kRestart,
           "the second of two equal requests reports cached tokens")};
}

std::vector<Fix> ForMemory(const Patient& p, bool fewer) {
  std::vector<Fix> fixes;
  fixes.push_back(
      Make("Give the KV cache more GPU memory", For(p.engine, kMoreMemory),
           "a restart; less memory is left for activations: watch for out-of-memory errors",
           "capacity in tokens at the engine's startup, and the hit rate under load"));
  fixes.push_back(Make("Store the KV cache in 8 bits: twice the tokens in the same memory",
                       For(p.engine, kSmallerValues),
                       "a restart; check the answer quality for your model",
                       "capacity in tokens doubles at the engine's startup"));
  fixes.push_back(Make("Keep evicted blocks in host memory", For(p.engine, kOffload),
                       "64 GB of host memory for each GPU (vLLM counts all GPUs of an engine "
                       "together), and transfers over PCIe when blocks are reused",
                       "follow-up turns after a pause are faster than first turns"));
  if (const std::string_view policy = For(p.engine, kEvictionPolicy); fewer && !policy.empty()) {
    fixes.push_back(
        Make("Evict by frequency of use instead of recency", policy,
             "no benefit if all prompts are used equally often; measure with your traffic",
             "shared prefixes (system prompts) are found after a burst of new ones"));
  }
  if (fewer) {
    fixes.push_back(
        Make("Run fewer sequences at once, so that more memory is left for cached prefixes",
             For(p.engine, kFewerSequences), "requests wait in the queue at peak load",
             "preemptions stop, and cached blocks live longer than the time between turns"));
  }
  return fixes;
}

}  // namespace

std::vector<Fix> RemediesFor(FindingId id, const Patient& p) {
  switch (id) {
    case FindingId::kBlockSizeMismatch:
      return p.divided ? ForDividedEngines(p) : std::vector{SetRouterSize(p), SetEngineSize(p)};
    case FindingId::kBlockSizeMissing:
      return {SetRouterSize(p)};
    case FindingId::kBlockSizeConflict:
      return {Make("Set the same block size on all workers of the model",
                   fmt::format(fmt::runtime(For(p.engine, kEngineBlockSize)), "SIZE"), kRestart,
                   "every worker is admitted and reports the same block size"),
              AllowBothSizes()};
    case FindingId::kWorkersRejected:
      return {
          Make("Give all workers of the group the same configuration: model, block size, "
               "parallelism, context length",
               "", kRestart, "the router uses every worker; its startup log has no such line")};
    case FindingId::kPrefixCachingOff:
      return {Make("Turn prefix caching on", For(p.engine, kCaching), kRestart,
                   "the second of two equal requests reports cached tokens")};
    case FindingId::kPublisherOff:
    case FindingId::kEventBufferOff:
    case FindingId::kNoEvents:
    case FindingId::kEndpointConnects:
      return {Make("Make the engine publish KV events at an address that the router can reach",
                   For(p.engine, kPublisher), kRestart,
                   "`fathom listen WORKER` shows batches under traffic, and the index grows")};
    case FindingId::kBlockSizeNote:
      return {
          Make("Add a note beside the setting",
               "# Must match the backend's tokens_per_block. vLLM default: 16, TRT-LLM default: "
               "32.",
               "none", "`fathom lint PAGE` has no finding")};
    case FindingId::kReplayMissing:
    case FindingId::kEventGap:
      return {Make("Give the engine a replay endpoint, so that lost events can be replayed",
                   For(p.engine, kReplay), kRestart,
                   "after a gap: kv_router_feed_repaired_batches_total grows and the rank stays "
                   "trusted")};
    case FindingId::kPageSizeOne:
      return {Make("Use pages of 16 tokens or more: one event per page instead of one per token",
                   "--page-size 16", kRestart, "`fathom listen WORKER` shows block size 16")};
    case FindingId::kPortCollision:
      return {
          Make("Leave room between ports: rank r uses the base port plus r, for events and for "
               "replay",
               R"("endpoint": "tcp://*:5557", "replay_endpoint": "tcp://*:5657")", kRestart,
               "every rank of every engine starts, and `fathom listen WORKER` shows all ranks")};
    case FindingId::kRouterModeMissing:
      return {Make("Set the router mode to kv",
                   p.router == RouterKind::kFathom ? "--router-mode kv" : "DYN_ROUTER_MODE=kv",
                   kRouterRestart, "scheduler log lines with cached blocks appear")};
    case FindingId::kKvEventsUnused:
      return {Make("Enable KV events in the router",
                   p.router == RouterKind::kFathom ? "(leave out --no-router-kv-events)"
                                                   : "DYN_ROUTER_USE_KV_EVENTS=true",
                   kRouterRestart, std::string(kIndexGrows))};
    case FindingId::kServiceHidesPods:
      return {Make("Address the pods through a headless Service",
                   "dns+http://NAME.NAMESPACE.svc:PORT, with clusterIP: None in the Service",
                   kRouterRestart, "GET /health lists one worker per pod")};
    case FindingId::kTokensDiffer:
      return {
          Make("Give the router the engine's model files, and use the same chat template in both",
               "--model-path DIR", kRouterRestart,
               "`fathom tokenize --model-path DIR` and the engine's /tokenize give the same ids")};
    case FindingId::kPromptsUnread:
      return {Make(
          "Let the router tokenize, with the model's files", "--model-path DIR", kRouterRestart,
          "GET /health: the model's status is ok; `tokens_from` in GET /debug/decisions is "
          "no longer none")};
    case FindingId::kUnsupportedGroups:
      return {Make("Update Fathom, or run the model without these layers' caches", "", kRestart,
                   "GET /health: the rank is trusted")};
    case FindingId::kUnhealthy:
      return {
          Make("Find out why the worker fails its health check: look at its log, its memory and "
               "the network",
               "", "none", "GET /health: the worker is ready")};
    case FindingId::kSourceStale:
      return {Make("Let the router read what names its workers; the error says what is missing", "",
                   "none", "GET /health: the source's status is ok")};
    case FindingId::kReplicaAlone:
      return {
          Make("Let the routers of the group reach each other: the same carrier, group and key, "
               "and an id of its own for each",
               "--replicas, --replica-group, --replica-key-file, --replica-id", kRouterRestart,
               "GET /health: `replicas` lists every router of the group, each with hears_us")};
    case FindingId::kReplicasDiffer:
      return {Make("Give all routers of the group the same workers", "--worker-urls",
                   kRouterRestart,
                   "GET /health: all of `replicas` have the same number of workers")};
    case FindingId::kEventLag:
      return {Make("Look for a slow network or an overloaded router between publisher and index",
                   "", "none", "kv_router_event_lag_seconds falls below the limit")};
    case FindingId::kPredictionDrift:
      return {
          Make("Check the engine's release, its KV connector, and whether removals are published",
               "", "none", "x-fathom-cached-tokens matches the engine's cached_tokens")};
    case FindingId::kChurn:
    case FindingId::kMemoryPressure:
    case FindingId::kPreemptions:
      return ForMemory(p, true);
    case FindingId::kMemoryFractionLow:
      return {ForMemory(p, false).front()};
    case FindingId::kModelDoesNotFit:
      return {Make(
          "Split the model over more GPUs, or use quantized weights",
          For(p.engine, {"--tensor-parallel-size", "--tp-size", "--tp_size", "tensor parallelism"}),
          "more GPUs per worker", "the engine starts and reports a capacity in tokens")};
    case FindingId::kIndexEmpty:
    case FindingId::kEventsNotApplied:
      return ForRefusedEvents(p);
    case FindingId::kFollowUpsSlow:
      return ForSlowFollowUps(p);
    case FindingId::kWastedPrefill:
      return {};  // depends on what the waste is for: waste_remedies.h
  }
  return {};
}

}  // namespace fathom
