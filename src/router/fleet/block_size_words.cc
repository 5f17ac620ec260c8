#include "router/fleet/block_size_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace fathom {
namespace {

// An engine chooses the name: it must not begin a line of its own in the log.
std::string OnOneLine(std::string_view name) {
  std::string line(name);
  std::ranges::replace(line, '\n', ' ');
  return line;
}

constexpr std::string_view kEveryEngine =
    "vLLM --block-size, SGLang --page-size, TensorRT-LLM tokens_per_block";

std::string_view From(SizeSource source) {
  return source == SizeSource::kEvents ? "from KV events" : "from worker reports";
}

std::string_view KnownBy(SizeSource source) {
  return source == SizeSource::kEvents ? "its KV events" : "its own report";
}

// "DYN_KV_CACHE_BLOCK_SIZE=32", "--kv-cache-block-size=32", "kv-cache-block-size: 32".
std::string With(const SizeSetting& setting, uint32_t size) {
  if (setting.place.empty()) return fmt::format("{}={}", setting.name, size);
  return fmt::format("{}: {} ({})", setting.name, size, setting.place);
}

std::string NameOf(const SizeSetting& setting) {
  return setting.place.empty() ? setting.name : fmt::format("{} ({})", setting.name, setting.place);
}

// A worker whose size is not that of the setting.
struct Misfit {
  EngineKind engine = EngineKind::kUnknown;
  uint32_t worker = 0;  // 0: not known exactly
  uint32_t frontend = 0;
  SizeRemark::Others others = SizeRemark::Others::kAgree;
};

Misfit MisfitOf(const SizeRemark& r) {
  return {r.engine, r.at_least ? 0 : r.size, r.other, r.others};
}

// Advice that holds whatever the sizes of the other workers are.
std::string UnsetFix(const Misfit& misfit, const SizeSetting& setting) {
  const std::string engine = EngineSetting(misfit.engine, misfit.frontend);
  if (misfit.others == SizeRemark::Others::kDiffer) {
    return fmt::format(
        "Configure {} on workers, or unset {} on the frontend and start it with "
        "--block-size-conflict=mixed: other workers have another block size.",
        engine, NameOf(setting));
  }
  return fmt::format("Unset {} on the frontend, which then detects it, or configure {} on workers.",
                     NameOf(setting), engine);
}

// The worker's size is advised for the frontend only where no other worker has another one.
std::string BothFixes(const Misfit& misfit, const SizeSetting& setting) {
  if (misfit.worker == 0 || misfit.others != SizeRemark::Others::kAgree) {
    return UnsetFix(misfit, setting);
  }
  return fmt::format("Set {} on the frontend or configure {} on workers.",
                     With(setting, misfit.worker), EngineSetting(misfit.engine, misfit.frontend));
}

std::string RefusalFix(EngineKind engine, uint32_t size) {
  return fmt::format(
      "configure {} on this worker, or start the router with --block-size-conflict=mixed",
      EngineSetting(engine, size));
}

// For a model with many names.
std::string Shortened(const std::string& names) {
  constexpr size_t kMost = 200;
  return names.size() <= kMost ? names : names.substr(0, kMost) + "…";
}

std::string ConflictWords(const SizeRemark& remark) {
  std::vector<SizeRemark::Claim> claims = remark.claims;
  std::ranges::sort(claims, [](const SizeRemark::Claim& a, const SizeRemark::Claim& b) {
    return std::tie(a.size, a.url) < std::tie(b.size, b.url);
  });
  std::string text = fmt::format("Workers disagree about the KV block size of model '{}':",
                                 OnOneLine(Shortened(remark.model)));
  for (const SizeRemark::Claim& claim : claims) {
    text += fmt::format("\n  {:>5} tokens  {} ({}, by {})", claim.size, claim.url,
                        Name(claim.engine), KnownBy(claim.source));
  }
  return text + fmt::format(
                    "\nGive all of them one block size ({}), or serve them side by side with "
                    "--block-size-conflict=mixed.",
                    kEveryEngine);
}

}  // namespace

std::string EngineSetting(EngineKind engine, uint32_t size) {
  switch (engine) {
    case EngineKind::kVllm:
      return fmt::format("--block-size {}", size);
    case EngineKind::kSglang:
      return fmt::format("--page-size {}", size);
    case EngineKind::kTrtllm:
      return fmt::format("tokens_per_block={}", size);
    case EngineKind::kUnknown:
      return fmt::format("block size {}", size);
  }
  std::unreachable();
}

std::string WordsOf(const SizeRemark& r) {
  using Kind = SizeRemark::Kind;
  switch (r.kind) {
    case Kind::kAgreed:
      return fmt::format("Auto-configured KV block size to {} ({})", r.size, From(r.source));
    case Kind::kCohort:
      return fmt::format("Workers with KV block size {} form a separate cohort ({})", r.size,
                         From(r.source));
    case Kind::kSilent:
      return "Worker does not report its KV block size: it is routed by load until its first KV "
             "event";
    case Kind::kReportDiffers:
      return fmt::format("Worker reports KV block size {}, but {} is configured. {}", r.size,
                         r.other, BothFixes(MisfitOf(r), r.setting));
    case Kind::kMismatch:
      return fmt::format(
          "Frontend KV block size ({}) does not match worker block size ({}{}).\n{}\n"
          "KV-aware routing will not function until block sizes match.",
          r.other, r.at_least ? "at least " : "", r.size, BothFixes(MisfitOf(r), r.setting));
    case Kind::kOddRank:
      return fmt::format(
          "KV events of a rank have blocks of {} tokens, the model's other ranks {}: the rank is "
          "routed by load",
          r.size, r.other);
    case Kind::kStaleReport:
      return fmt::format(
          "KV events have blocks of {} tokens, the worker's own report says {}: using the size "
          "from the events",
          r.size, r.other);
    case Kind::kRefused:
      return fmt::format(
          "Worker is not admitted: its KV block size ({}) is not that of the fleet ({})", r.size,
          r.other);
    case Kind::kReadmitted:
      return "Worker is admitted: its KV block size now matches the fleet";
    case Kind::kConflictAtStart:
      return ConflictWords(r);
    case Kind::kTrusted:
      return "KV events of a rank are trusted";
  }
  std::unreachable();
}

void Say(const SizeRemark& r, Log& log) {
  using Kind = SizeRemark::Kind;
  const std::string words = WordsOf(r);
  const uint64_t id = r.worker.value();
  const std::string conflict = log.docs().To(RunbookOf(TrustCause::kBlockSizeConflict));
  const std::string mismatch = log.docs().To(RunbookOf(TrustCause::kBlockSizeMismatch));
  switch (r.kind) {
    case Kind::kAgreed:
    case Kind::kCohort:
      return log.Info(words, {{"model", Shortened(r.model)}, {"workers", r.workers}});
    case Kind::kConflictAtStart:
      return log.Error(words, {{"model", Shortened(r.model)}, {"docs", conflict}});
    case Kind::kSilent:
    case Kind::kReadmitted:
      return log.Info(words, {{"worker_id", id}, {"url", r.url}, {"engine", Name(r.engine)}});
    case Kind::kReportDiffers:
      return log.Warn(words, {{"worker_id", id},
                              {"url", r.url},
                              {"engine", Name(r.engine)},
                              {"fix", UnsetFix(MisfitOf(r), r.setting)},
                              {"docs", mismatch}});
    case Kind::kStaleReport:
      return log.Warn(words, {{"worker_id", id},
                              {"url", r.url},
                              {"dp_rank", r.rank},
                              {"hint",
                               "the report may predate the backend's choice of its block size, "
                               "or leave out decode context parallelism"}});
    case Kind::kRefused:
      return log.Error(words, {{"worker_id", id},
                               {"url", r.url},
                               {"model", r.model},
                               {"known_from", KnownBy(r.source)},
                               {"fix", RefusalFix(r.engine, r.other)},
                               {"docs", conflict}});
    case Kind::kMismatch:
      return log.Error(words, {{"worker_id", id},
                               {"url", r.url},
                               {"dp_rank", r.rank},
                               {"fix", UnsetFix(MisfitOf(r), r.setting)},
                               {"docs", mismatch}});
    case Kind::kOddRank:
      return log.Error(words, {{"worker_id", id},
                               {"url", r.url},
                               {"dp_rank", r.rank},
                               {"fix", RefusalFix(r.engine, r.other)},
                               {"docs", mismatch}});
    case Kind::kTrusted:
      return log.Info(
          words, {{"worker_id", id}, {"url", r.url}, {"dp_rank", r.rank}, {"block_size", r.size}});
  }
}

TrustWords WordsOf(const TrustFacts& f) {
  switch (f.trust.cause) {
    case TrustCause::kBlockSizeMismatch:
      return {fmt::format("blocks of {} tokens by {}, the router uses {}; {} stored events "
                          "skipped",
                          f.known.size, KnownBy(f.known.source), f.expected, f.mismatches),
              f.setting ? UnsetFix({f.engine, f.known.size, f.expected, f.others}, *f.setting)
                        : RefusalFix(f.engine, f.expected)};
    case TrustCause::kBlockSizeConflict:
      return {fmt::format("blocks of {} tokens by {}, {} in the rest of the fleet", f.known.size,
                          KnownBy(f.known.source), f.expected),
              RefusalFix(f.engine, f.expected)};
    default:
      return {};
  }
}

}  // namespace fathom
