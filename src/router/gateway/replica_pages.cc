#include "router/gateway/replica_pages.h"

#include <fmt/format.h>

#include "base/wall_time.h"
#include "metrics/catalogue.h"

namespace fathom {
namespace {

// Until a replica that has joined, or come back, says that it hears this one.
constexpr Duration kTimeToHear = std::chrono::seconds(5);

std::shared_ptr<const ReplicaView> ViewOn(const ReplicaBoard* board) {
  return board == nullptr ? nullptr : board->Current();
}

double AgeOf(const ReplicaView::Row& row, TimePoint now) {
  return row.self ? 0 : Seconds(std::max(now - row.heard, Duration::zero()));
}

// Empty: nothing is.
std::string WhyRefused(const ReplicaView& view) {
  if (view.refused.empty()) return "";
  return fmt::format("no other replica is heard; messages with {} are dropped", view.refused);
}

void WriteRow(JsonWriter& w, const ReplicaView::Row& row, TimePoint now) {
  w.BeginObject().Key("id").String(row.id).Key("self").Bool(row.self);
  w.Key("age_seconds").Number(AgeOf(row, now));
  w.Key("requests").Unsigned(row.requests);
  w.Key("prefill_tokens").Number(row.prefill_tokens);
  w.Key("version").String(row.presence.version);
  w.Key("workers").Unsigned(row.presence.workers);
  w.Key("worker_set");
  const auto set = row.presence.worker_set;
  set ? w.String(fmt::format("{:016x}", *set)) : w.Null();
  w.Key("models").BeginArray();
  for (const std::string& pattern : row.presence.models) w.String(pattern);
  w.EndArray();
  w.Key("informed").Bool(row.presence.informed);
  w.Key("hears_us").Bool(row.self || row.hears_us);
  w.Key("unheard_seconds");
  const bool heard = row.self || row.hears_us;
  heard ? w.Null() : w.Number(Seconds(std::max(now - row.heard_us, Duration::zero())));
  w.Key("round_trip_seconds");
  row.round_trip == Duration::zero() ? w.Null() : w.Number(Seconds(row.round_trip));
  w.EndObject();
}

void AddMessages(const ReplicaView& view, Exposition& out) {
  const MetricFamily& messages = Metric("fathom_replica_messages_total");
  const MetricFamily& bytes = Metric("fathom_replica_bytes_total");
  const auto add = [&](const MetricFamily& family, const char* direction, uint64_t value) {
    out.Add(family, {{"direction", direction}}, static_cast<double>(value));
  };
  add(messages, "sent", view.counts.sent);
  add(messages, "received", view.counts.received);
  add(bytes, "sent", view.counts.sent_bytes);
  add(bytes, "received", view.counts.received_bytes);
  const MetricFamily& dropped = Metric("fathom_replica_messages_dropped_total");
  for (size_t i = 0; i < kReplicaDrops; ++i) {
    out.Add(dropped, {{"reason", std::string(Name(static_cast<ReplicaDrop>(i)))}},
            static_cast<double>(view.counts.dropped[i]));
  }
  out.Add(dropped, {{"reason", "not_sent"}}, static_cast<double>(view.carried.dropped));
}

}  // namespace

void WriteReplicas(JsonWriter& w, const ReplicaBoard* board) {
  const auto view = ViewOn(board);
  const TimePoint now = std::chrono::steady_clock::now();
  w.Key("replicas").BeginArray();
  if (view != nullptr) {
    for (const ReplicaView::Row& row : view->rows) WriteRow(w, row, now);
  }
  w.EndArray();
  w.Key("replica_carrier");
  if (view == nullptr) {
    w.Null();
    return;
  }
  w.BeginObject().Key("kind").String(view->carrier).Key("group").String(view->group);
  w.Key("status").String(view->up ? "ok" : "down").Key("since").String(WallTime(view->since));
  w.Key("error");
  const std::string problem = view->problem.empty() ? WhyRefused(*view) : view->problem;
  problem.empty() ? w.Null() : w.String(problem);
  w.Key("id_conflicts").Unsigned(view->conflicts);
  w.EndObject();
}

std::string ReplicaProblem(const ReplicaBoard* board) {
  const auto view = ViewOn(board);
  if (view == nullptr) return "";
  const TimePoint now = std::chrono::steady_clock::now();
  if (!view->up) {
    return fmt::format("the other replicas are not reached: {}", view->problem);
  }
  if (!view->refused.empty()) return WhyRefused(*view);
  // A mesh is up while it reaches one: addresses of those that have left are no problem of it.
  if (view->carrier == "nats" && !view->problem.empty()) return view->problem;
  for (const ReplicaView::Row& row : view->rows) {
    if (row.self || row.hears_us || now - row.heard_us < kTimeToHear) continue;
    return fmt::format("replica {} does not hear this one", row.id);
  }
  return "";
}

void CollectReplicas(const ReplicaBoard& board, Exposition& out) {
  const auto view = board.Current();
  if (view == nullptr) return;
  const TimePoint now = std::chrono::steady_clock::now();
  out.Add(Metric("fathom_replicas"), {}, static_cast<double>(view->living()));
  out.Add(Metric("fathom_replica_carrier_up"), {}, view->up ? 1 : 0);
  out.Add(Metric("fathom_replica_conflicts_total"), {}, static_cast<double>(view->conflicts));
  for (const ReplicaView::Row& row : view->rows) {
    out.Add(Metric("fathom_replica_requests"), {{"replica", row.id}},
            static_cast<double>(row.requests));
    if (row.self) continue;
    out.Add(Metric("fathom_replica_age_seconds"), {{"replica", row.id}}, AgeOf(row, now));
    if (row.round_trip == Duration::zero()) continue;
    out.Add(Metric("fathom_replica_round_trip_seconds"), {{"replica", row.id}},
            Seconds(row.round_trip));
  }
  const MetricFamily& snapshots = Metric("fathom_replica_snapshots_total");
  out.Add(snapshots, {{"what", "asked"}}, static_cast<double>(view->snapshots.asked));
  out.Add(snapshots, {{"what", "taken"}}, static_cast<double>(view->snapshots.taken));
  out.Add(snapshots, {{"what", "dropped"}}, static_cast<double>(view->snapshots.dropped));
  out.Add(snapshots, {{"what", "without"}}, static_cast<double>(view->snapshots.without));
  out.Add(snapshots, {{"what", "failed"}}, static_cast<double>(view->snapshots.failed));
  out.Add(snapshots, {{"what", "sent"}}, static_cast<double>(view->snapshots.told));
  const MetricFamily& polled = Metric("fathom_replica_polled_workers");
  out.Add(polled, {{"role", "polls"}}, static_cast<double>(view->polls));
  out.Add(polled, {{"role", "follows"}}, static_cast<double>(view->follows));
  const MetricFamily& answers = Metric("fathom_replica_polled_answers_total");
  out.Add(answers, {{"what", "sent"}}, static_cast<double>(view->answers.told));
  out.Add(answers, {{"what", "received"}}, static_cast<double>(view->answers.heard));
  out.Add(answers, {{"what", "dropped"}}, static_cast<double>(view->answers.dropped));
  out.Add(answers, {{"what", "incomplete"}}, static_cast<double>(view->answers.incomplete));
  AddMessages(*view, out);
}

void CollectForwarded(const PeerDirectory::Counts& counts, Exposition& out) {
  const auto add = [&](const char* result, const std::atomic<uint64_t>& count) {
    out.Add(Metric("fathom_forwarded_requests_total"), {{"result", result}},
            static_cast<double>(count.load(std::memory_order_relaxed)));
  };
  add("forwarded", counts.forwarded);
  add("failed", counts.failed);
  add("misdirected", counts.misdirected);
}

}  // namespace fathom
