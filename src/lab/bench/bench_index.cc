#include "lab/bench/bench_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "base/exit_status.h"
#include "base/text.h"
#include "codec/json.h"
#include "lab/bench/bench_settings.h"
#include "lab/bench/operation_players.h"
#include "lab/bench/trace_operations.h"

namespace fathom {
namespace {

constexpr std::string_view kIndexUsage =
    "usage: fathom bench index TRACE [ranks=8] [blocks=16384] [block-size=16] [repeat=1]\n"
    "         [assign=round-robin|sticky] [generated=0|1] [write=FILE]\n"
    "         [threads=1] [runs=1] [baseline=1|0]\n"
    "       fathom bench index --ops FILE [threads=1] [runs=1] [baseline=1|0]\n"
    "See bench/README.md.\n";

struct IndexBenchPlan {
  std::string ops;  // a file; or
  std::string trace;
  TraceOperationsPlan from_trace;
  std::string write;
  size_t threads = 1;
  size_t runs = 1;
  bool baseline = true;
};

struct Measured {
  PlayTimes times;
  Observed seen;
  uint64_t at_rest = 0;  // checksum
  size_t held = 0;
  size_t distinct = 0;
  size_t bytes = 0;
  uint64_t oddities = 0;
};

// One run that takes the whole time, and one that looks at every operation.
Measured MeasureReal(const OperationList& list, const IndexBenchPlan& plan) {
  const Shares shares = SharesOf(list, plan.threads);
  const uint32_t block_size = plan.from_trace.block_size;
  Measured measured;
  {
    RealIndex index(list.ranks(), block_size, plan.threads);
    measured.times = Play(list, shares, [&](size_t) { return index.MakeHand(); });
    measured.held = index.held_blocks();
    measured.distinct = index.distinct_blocks();
    measured.bytes = index.bytes();
    measured.oddities = index.oddities();
  }
  RealIndex index(list.ranks(), block_size, plan.threads);
  measured.seen = Observe(list, shares, [&](size_t) { return index.MakeHand(); });
  measured.at_rest = ChecksumAtRest(list, index.MakeHand());
  return measured;
}

// On one thread, whatever the real one has.
Measured MeasurePlain(const OperationList& list) {
  const Shares shares = SharesOf(list, 1);
  Measured measured;
  {
    PlainIndex index(list.ranks());
    measured.times = Play(list, shares, [&](size_t) { return PlainHand(index, list.ranks()); });
  }
  PlainIndex index(list.ranks());
  measured.seen = Observe(list, shares, [&](size_t) { return PlainHand(index, list.ranks()); });
  measured.at_rest = ChecksumAtRest(list, PlainHand(index, list.ranks()));
  measured.held = index.held_blocks();
  return measured;
}

void KeepBest(std::optional<Measured>& best, Measured next) {
  if (!best) {
    best = std::move(next);
    return;
  }
  if (next.times.seconds() < best->times.seconds()) best->times = next.times;
  if (next.seen.querying < best->seen.querying) best->seen = next.seen;
}

// Whether the plain index gave the same answers. On several threads only those at rest are fixed.
bool Agree(const Measured& real, const Measured& plain, size_t threads) {
  if (real.at_rest != plain.at_rest || real.held != plain.held) return false;
  return threads > 1 || real.seen.checksum == plain.seen.checksum;
}

// --- report -------------------------------------------------------------------------------------

double PerBlock(Duration time, uint64_t blocks) {
  return static_cast<double>(time.count()) / static_cast<double>(std::max<uint64_t>(blocks, 1));
}

double Rate(const OperationList& list, const Measured& measured) {
  return static_cast<double>(list.block_operations()) / measured.times.seconds();
}

void WriteIndexTimes(JsonWriter& w, const OperationList& list, const Measured& measured) {
  const auto microseconds = [](Duration d) { return Seconds(d) * 1e6; };
  const LatencyHistogram& lookups = measured.seen.lookups;
  w.Key("seconds").Number(measured.times.seconds());
  w.Key("block_operations_per_second").Number(Rate(list, measured));
  w.Key("cpu_ns_per_operation").Number(PerBlock(measured.times.cpu, list.block_operations()));
  w.Key("ns_per_query_key").Number(PerBlock(measured.seen.querying, list.query_keys()));
  w.Key("ns_per_stored_block").Number(PerBlock(measured.seen.storing, list.stored_blocks()));
  w.Key("ns_per_removed_block").Number(PerBlock(measured.seen.removing, list.removed_blocks()));
  w.Key("lookup_microseconds").BeginObject();
  w.Key("mean").Number(microseconds(lookups.mean()));
  w.Key("p50").Number(microseconds(lookups.Percentile(50)));
  w.Key("p99").Number(microseconds(lookups.Percentile(99)));
  w.Key("p999").Number(microseconds(lookups.Percentile(99.9)));
  w.Key("max").Number(microseconds(lookups.max()));
  w.EndObject();
  w.Key("checksum").String(fmt::format("{:016x}", measured.seen.checksum));
  w.Key("checksum_at_rest").String(fmt::format("{:016x}", measured.at_rest));
}

void WriteOperations(JsonWriter& w, const OperationList& list) {
  w.Key("ranks").Unsigned(list.ranks());
  w.Key("block_operations").Unsigned(list.block_operations());
  w.Key("queries").Unsigned(list.queries()).Key("query_keys").Unsigned(list.query_keys());
  w.Key("stored_blocks").Unsigned(list.stored_blocks());
  w.Key("removed_blocks").Unsigned(list.removed_blocks());
}

std::string IndexReportOf(const OperationList& list, const IndexBenchPlan& plan,
                          const Measured& real, const std::optional<Measured>& plain) {
  JsonWriter w;
  w.BeginObject().Key("threads").Unsigned(plan.threads).Key("runs").Unsigned(plan.runs);
  WriteOperations(w, list);
  WriteIndexTimes(w, list, real);
  w.Key("found").Number(static_cast<double>(real.seen.best_found) /
                        static_cast<double>(std::max<uint64_t>(list.query_keys(), 1)));
  w.Key("live_entries").Unsigned(real.held).Key("distinct_blocks").Unsigned(real.distinct);
  w.Key("bytes").Unsigned(real.bytes);
  w.Key("bytes_per_entry")
      .Number(static_cast<double>(real.bytes) /
              static_cast<double>(std::max<size_t>(real.held, 1)));
  w.Key("odd_blocks").Unsigned(real.oddities);
  if (plain) {
    w.Key("baseline").BeginObject();
    WriteIndexTimes(w, list, *plain);
    w.EndObject();
    w.Key("times_baseline").Number(Rate(list, real) / Rate(list, *plain));
    w.Key("agrees").Bool(Agree(real, *plain, plan.threads));
  }
  w.EndObject();
  return w.Take();
}

// --- arguments ----------------------------------------------------------------------------------

Result<void> SetNumber(IndexBenchPlan& plan, std::string_view arg, std::string_view key,
                       uint64_t number) {
  const auto take = [&](auto& field, uint64_t least, uint64_t most) -> Result<void> {
    if (number < least || number > most) return Fail(Blame::kCaller, "'{}': out of range", arg);
    field = static_cast<std::remove_reference_t<decltype(field)>>(number);
    return {};
  };
  TraceOperationsPlan& from = plan.from_trace;
  if (key == "ranks") return take(from.ranks, 1, PrefixIndex::kMostRanks);
  if (key == "blocks") return take(from.blocks, 1, 1 << 24);
  if (key == "repeat") return take(from.repeat, 1, 1000);
  if (key == "generated") return take(from.generated, 0, 1);
  if (key == "threads") return take(plan.threads, 1, 256);
  if (key == "runs") return take(plan.runs, 1, 1000);
  if (key == "baseline") return take(plan.baseline, 0, 1);
  if (key == "block-size" && number > 0 && kTokensPerTraceId % number == 0) {
    return take(from.block_size, 1, kTokensPerTraceId);
  }
  return Fail(Blame::kCaller, "no such setting, or out of range: '{}'", arg);
}

Result<void> Set(IndexBenchPlan& plan, std::string_view arg) {
  const size_t equals = arg.find('=');
  const std::string_view key = arg.substr(0, equals);
  const std::string_view value = equals == arg.npos ? "" : arg.substr(equals + 1);
  if (key == "write" && !value.empty()) {
    plan.write = value;
    return {};
  }
  if (key == "assign" && (value == "sticky" || value == "round-robin")) {
    using Assign = TraceOperationsPlan::Assign;
    plan.from_trace.assign = value == "sticky" ? Assign::kSticky : Assign::kRoundRobin;
    return {};
  }
  const auto number = ParseDecimal(value);
  if (!number) return Fail(Blame::kCaller, "'{}': not NAME=NUMBER", arg);
  return SetNumber(plan, arg, key, *number);
}

Result<IndexBenchPlan> IndexPlanOf(std::span<const std::string_view> args) {
  IndexBenchPlan plan;
  if (args.size() >= 2 && args[0] == "--ops") {
    plan.ops = args[1];
    args = args.subspan(2);
  } else if (!args.empty() && !args[0].starts_with('-')) {
    plan.trace = args[0];
    args = args.subspan(1);
  } else {
    return Fail(Blame::kCaller, "the trace, or --ops FILE, is missing");
  }
  for (const std::string_view arg : args) TRY_VOID(Set(plan, arg));
  return plan;
}

Result<OperationList> ListOf(const IndexBenchPlan& plan) {
  if (!plan.ops.empty()) return OperationList::Read(plan.ops);
  TRY(const auto trace, ReadTrace(plan.trace));
  OperationList list = OperationsOf(trace, plan.from_trace);
  if (!plan.write.empty()) TRY_VOID(list.Write(plan.write));
  return list;
}

}  // namespace

int RunBenchIndex(std::span<const std::string_view> args) {
  const auto plan = IndexPlanOf(args);
  if (!plan) return RefuseBench(plan.error().what, kIndexUsage);
  const auto list = ListOf(*plan);
  if (!list) return RefuseBench(list.error().what, kIndexUsage);
  if (list->size() > std::numeric_limits<uint32_t>::max())
    return RefuseBench("too many operations", kIndexUsage);
  // Of several runs the best times count, for both alike: others on the machine only add to them.
  std::optional<Measured> plain;
  std::optional<Measured> best;
  for (size_t run = 0; run < plan->runs; ++run) {
    if (plan->baseline) KeepBest(plain, MeasurePlain(*list));
    KeepBest(best, MeasureReal(*list, *plan));
  }
  const Measured& real = *best;
  fmt::print("{}\n", IndexReportOf(*list, *plan, real, plain));
  if (!plain || Agree(real, *plain, plan->threads)) return kExitFine;
  if (real.oddities > 0) {
    fmt::print(stderr, "fathom bench: answers differ, but {} blocks came out of order\n",
               real.oddities);
    return kExitFine;
  }
  fmt::print(stderr, "fathom bench: the index and the plain one do not give the same answers\n");
  return kExitFailed;
}

}  // namespace fathom
