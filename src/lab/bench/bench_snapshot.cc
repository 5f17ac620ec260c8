#include "lab/bench/bench_snapshot.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/exit_status.h"
#include "base/random.h"
#include "codec/json.h"
#include "io/net/message_seal.h"
#include "lab/bench/bench_settings.h"
#include "router/index/cache_index.h"
#include "router/index/holding_snapshot.h"
#include "router/replicas/replica_message.h"

namespace fathom {
namespace {

constexpr std::string_view kSnapshotUsage =
    "usage: fathom bench snapshot [ranks=8] [blocks=1250000] [prompt=128] [churn=0.2]\n"
    "blocks: of each rank; prompt: blocks of a prompt; churn: share of the prompts that were\n"
    "replaced once. See bench/README.md.\n";

constexpr size_t kSlice = 4096;  // blocks, as the intake does it
constexpr size_t kPieceBytes = 192 << 10;
constexpr size_t kIndexBytes = size_t{16} << 30;
constexpr BlockShape kShape{.size = 16, .pairs = false};

struct SnapshotBenchPlan {
  uint64_t ranks = 8;
  uint64_t blocks = 1'250'000;
  uint64_t prompt = 128;
  double churn = 0.2;
};

struct Clocked {
  double seconds = 0;
  double cpu = 0;
};

double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

template <class Work>
void AddTime(Clocked& sum, Work work) {
  const double cpu = CpuSeconds();
  const TimePoint begun = std::chrono::steady_clock::now();
  work();
  sum.seconds += Seconds(std::chrono::steady_clock::now() - begun);
  sum.cpu += CpuSeconds() - cpu;
}

// One router's index.
struct Side {
  explicit Side(uint64_t secret) : index(kIndexBytes, secret) {}
  CacheIndex index;
  Epochs::Seat seat{index.epochs()};
  std::vector<std::unique_ptr<RankHoldings>> ranks;
};

struct SnapshotTimes {
  Clocked filling, exporting, wrapping, unwrapping, opening, importing;
  double longest_slice = 0;         // seconds, of an export
  double longest_import_slice = 0;  // seconds
  size_t bytes = 0;
  size_t wire_bytes = 0;
  bool equal = true;
};

void StorePrompt(RankHoldings& rank, const SnapshotBenchPlan& plan, uint64_t number) {
  Random random(Random(number).Next());  // not shifted copies of each other
  std::vector<uint64_t> locals(plan.prompt);
  std::vector<uint64_t> hashes(plan.prompt);
  for (uint64_t& local : locals) local = random.Next();
  for (uint64_t& hash : hashes) hash = random.Next();
  rank.Store({.hashes = hashes, .locals = locals}, {});
}

void RemovePrompt(RankHoldings& rank, const SnapshotBenchPlan& plan, uint64_t number) {
  Random random(Random(number).Next());
  std::vector<uint64_t> hashes(plan.prompt);
  for (uint64_t i = 0; i < plan.prompt; ++i) (void)random.Next();
  for (uint64_t& hash : hashes) hash = random.Next();
  std::ranges::reverse(hashes);
  rank.Remove(hashes, {});
}

// Caches turn over, so that records are not in the order of prompts.
void Fill(Side& side, const SnapshotBenchPlan& plan) {
  const uint64_t prompts = plan.blocks / plan.prompt;
  const auto replaced = static_cast<uint64_t>(plan.churn * static_cast<double>(prompts));
  for (uint64_t r = 0; r < plan.ranks; ++r) {
    side.ranks.push_back(side.index.Open({r + 1, 0}, kShape, side.seat));
    const uint64_t first = 1 + r * 2 * prompts;
    for (uint64_t i = 0; i < prompts; ++i) StorePrompt(*side.ranks.back(), plan, first + i);
    Random random(r + 1);
    for (uint64_t i = 0; i < replaced; ++i) {
      RemovePrompt(*side.ranks.back(), plan, first + random.Below(prompts));
      StorePrompt(*side.ranks.back(), plan, first + prompts + i);
    }
  }
}

std::string ExportRank(Side& from, uint64_t r, SnapshotTimes& times) {
  const SnapshotHead head{.rank = {r + 1, 0},
                          .shape = kShape,
                          .shape_group = 0,
                          .mark = {.sequence = 1, .fingerprints = {1}}};
  std::string bytes;
  AddTime(times.exporting, [&] {
    HoldingExport exporting(*from.ranks[r], head);
    for (bool done = false; !done;) {
      Clocked slice;
      AddTime(slice, [&] { done = exporting.Advance(kSlice); });
      times.longest_slice = std::max(times.longest_slice, slice.cpu);
    }
    bytes = exporting.Take();
  });
  times.bytes += bytes.size();
  return bytes;
}

// As it goes through a carrier: cut, encoded, sealed; opened, decoded, put together.
std::string PassOn(const std::string& bytes, SnapshotTimes& times) {
  const MessageSeal seal("a key of the benchmark");
  const size_t pieces = (bytes.size() + kPieceBytes - 1) / kPieceBytes;
  std::string whole;
  whole.reserve(bytes.size());
  for (size_t i = 0; i < pieces; ++i) {
    std::string wire;
    AddTime(times.wrapping, [&] {
      ReplicaMessage message{.group = "group", .origin = "origin"};
      message.content = Piece{.to = "other",
                              .question = 1,
                              .piece = i,
                              .pieces = pieces,
                              .bytes = bytes.substr(i * kPieceBytes, kPieceBytes)};
      wire = Encode(message);
      seal.Close(wire);
    });
    times.wire_bytes += wire.size();
    AddTime(times.unwrapping, [&] {
      const auto opened = seal.Open(wire);
      const auto message = DecodeReplicaMessage(opened.value_or(""));
      if (message) whole += std::get<Piece>(message->content).bytes;
    });
  }
  return whole;
}

void ImportRank(Side& to, std::string bytes, SnapshotTimes& times) {
  std::optional<HoldingSnapshot> snapshot;
  AddTime(times.opening, [&] {
    auto opened = HoldingSnapshot::Open(std::move(bytes));
    if (opened) snapshot = *std::move(opened);
  });
  times.equal = times.equal && snapshot.has_value();
  if (!snapshot) return;
  AddTime(times.importing, [&] {
    to.ranks.push_back(to.index.Open(snapshot->head().rank, kShape, to.seat));
    HoldingImport importing(*to.ranks.back(), *snapshot);
    auto step = HoldingImport::Step::kMore;
    while (step == HoldingImport::Step::kMore) {
      Clocked slice;
      AddTime(slice, [&] { step = importing.Advance(kSlice); });
      times.longest_import_slice = std::max(times.longest_import_slice, slice.cpu);
    }
    times.equal = times.equal && step == HoldingImport::Step::kDone;
  });
}

SnapshotTimes MeasureSnapshot(const SnapshotBenchPlan& plan, Side& from, Side& to) {
  SnapshotTimes times;
  AddTime(times.filling, [&] { Fill(from, plan); });
  for (uint64_t r = 0; r < plan.ranks; ++r) {
    ImportRank(to, PassOn(ExportRank(from, r, times), times), times);
  }
  for (uint64_t r = 0; r < plan.ranks && times.equal; ++r) {
    const uint64_t held = from.ranks[r]->counters().held.value();
    times.equal = held > 0 && to.ranks[r]->counters().held.value() == held;
  }
  return times;
}

void WriteClocked(JsonWriter& w, std::string_view name, const Clocked& time, double blocks) {
  w.Key(name).BeginObject();
  w.Key("seconds").Number(time.seconds).Key("cpu_seconds").Number(time.cpu);
  w.Key("cpu_ms_per_million_blocks").Number(time.cpu * 1e9 / std::max(blocks, 1.0));
  w.EndObject();
}

std::string SnapshotReport(const SnapshotBenchPlan& plan, const SnapshotTimes& times,
                           const Side& from) {
  const auto pairs = static_cast<double>(from.index.held());
  JsonWriter w;
  w.BeginObject().Key("ranks").Unsigned(plan.ranks).Key("pairs").Unsigned(from.index.held());
  w.Key("bytes").Unsigned(times.bytes).Key("wire_bytes").Unsigned(times.wire_bytes);
  w.Key("bytes_per_pair").Number(static_cast<double>(times.bytes) / std::max(pairs, 1.0));
  WriteClocked(w, "filling", times.filling, pairs);
  WriteClocked(w, "export", times.exporting, pairs);
  WriteClocked(w, "encode_and_seal", times.wrapping, pairs);
  WriteClocked(w, "open_and_decode", times.unwrapping, pairs);
  WriteClocked(w, "check", times.opening, pairs);
  WriteClocked(w, "import", times.importing, pairs);
  w.Key("longest_export_slice_ms").Number(times.longest_slice * 1e3);
  w.Key("longest_import_slice_ms").Number(times.longest_import_slice * 1e3);
  w.Key("equal").Bool(times.equal);
  w.EndObject();
  return w.Take();
}

}  // namespace

int RunBenchSnapshot(std::span<const std::string_view> args) {
  SnapshotBenchPlan plan;
  const BenchSetting settings[] = {{"ranks", &plan.ranks, 1, 1024},
                                   {"blocks", &plan.blocks, 1, 1e8},
                                   {"prompt", &plan.prompt, 1, 65536},
                                   {"churn", &plan.churn, 0, 1}};
  if (const auto set = ReadSettings(args, settings); !set) {
    return RefuseBench(set.error().what, kSnapshotUsage);
  }
  Side from(1);
  Side to(2);
  const SnapshotTimes times = MeasureSnapshot(plan, from, to);
  fmt::print("{}\n", SnapshotReport(plan, times, from));
  return times.equal ? kExitFine : kExitFailed;
}

}  // namespace fathom
