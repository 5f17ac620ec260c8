#include "router/gateway/worker_admission.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/text.h"
#include "codec/json.h"
#include "codec/request_target.h"
#include "codec/url.h"
#include "metrics/catalogue.h"
#include "router/gateway/openai_error.h"

namespace fathom {
namespace {

constexpr std::array<std::string_view, 4> kWaitNames = {"", "interview", "block_size", "replay"};

// The worker that the query asks for; empty: it asks for one in a way that was not meant. Nothing
// may be taken for the router's own readiness that a script wrote to ask for a worker's.
std::optional<std::string> WorkerOfQuery(const RequestHead& head) {
  constexpr std::array<std::string_view, 3> kMeant = {"worker", "workers", "url"};
  for (const std::string_view part : SplitAny(RequestTarget::Of(head.target).query, "?&")) {
    const size_t equals = part.find('=');
    const std::string name = PercentDecode(part.substr(0, equals));
    const bool meant = std::ranges::any_of(
        kMeant, [&](std::string_view word) { return EqualsIgnoreCase(name, word); });
    if (!meant) continue;
    if (name != "worker" || equals == std::string_view::npos) return "";
    return PercentDecode(part.substr(equals + 1));
  }
  return std::nullopt;
}

Answer NotAdmitted(const Member& member, WaitsFor what) {
  JsonWriter w;
  w.BeginObject().Key("status").String("not ready");
  w.Key("state").String(Name(member.state));
  w.Key("waits_for");
  what == WaitsFor::kNothing ? w.Null() : w.String(Name(what));
  w.Key("cause");
  member.cause.empty() ? w.Null() : w.String(member.cause);
  w.EndObject();
  return {.status = 503, .body = w.Take()};
}

}  // namespace

std::string_view Name(WaitsFor what) { return kWaitNames[static_cast<size_t>(what)]; }

WaitsFor WaitOf(const GatewayContext& context, const Member& member, TimePoint now) {
  if (member.checked == WorkerState::kProbing) {
    const bool asked = member.held && member.worker->report.Current() != nullptr;
    return asked ? WaitsFor::kBlockSize : WaitsFor::kInterview;
  }
  // Requests wait for the replay as long, too.
  const bool replays = context.cache_index != nullptr && member.checked == WorkerState::kReady &&
                       member.worker->catch_up.Awaited(now, context.options.replay_wait);
  return replays ? WaitsFor::kReplay : WaitsFor::kNothing;
}

bool IsAdmitted(const GatewayContext& context, const Member& member, TimePoint now) {
  return member.checked == WorkerState::kReady && member.state != WorkerState::kDraining &&
         WaitOf(context, member, now) == WaitsFor::kNothing;
}

bool AsksOfOneWorker(const RequestHead& head, std::string_view path) {
  if (path == "/ready") return WorkerOfQuery(head).has_value();
  return path.starts_with("/workers/") && path.ends_with("/ready");
}

Answer WorkerReadyPage(const GatewayContext& context, std::string_view id) {
  const auto number = ParseDecimal(id);
  const auto fleet = context.fleet.Current();
  const Member* const member = number ? fleet->Find(WorkerId(*number)) : nullptr;
  if (member == nullptr) {
    return OpenAiError(404, "no_such_worker",
                       fmt::format("there is no worker '{}'", id.substr(0, 100)));
  }
  const TimePoint now = std::chrono::steady_clock::now();
  if (IsAdmitted(context, *member, now)) return {.body = R"({"status":"ready"})"};
  return NotAdmitted(*member, WaitOf(context, *member, now));
}

std::optional<Answer> ReadyOfWorker(const GatewayContext& context, const RequestHead& head) {
  constexpr size_t kLongest = 2048;
  auto text = WorkerOfQuery(head);
  if (!text) return std::nullopt;
  // A pod knows its address and port.
  if (!text->empty() && !text->contains("://")) text->insert(0, "http://");
  const auto url = text->size() > kLongest ? std::nullopt : std::optional(Url::Parse(*text));
  if (!url || !*url) {
    return OpenAiError(400, "bad_worker",
                       "write ?worker= and the URL of a worker, http://HOST:PORT, or HOST:PORT",
                       "worker");
  }
  const auto fleet = context.fleet.Current();
  const Member* const member = fleet->Find(WorkerId::OfUrl((*url)->ToString()));
  if (member != nullptr && IsAdmitted(context, *member, std::chrono::steady_clock::now())) {
    return Answer{.body = R"({"status":"ready"})"};
  }
  return Answer{.status = 503, .body = R"({"status":"not ready"})"};
}

void CollectWaits(const GatewayContext& context, const FleetSnapshot& fleet, Exposition& out) {
  std::array<size_t, kWaitNames.size()> counts{};
  const TimePoint now = std::chrono::steady_clock::now();
  for (const Member& member : fleet.members()) {
    ++counts[static_cast<size_t>(WaitOf(context, member, now))];
  }
  for (size_t i = 1; i < counts.size(); ++i) {
    out.Add(Metric("fathom_workers_waiting"), {{"for", std::string(kWaitNames[i])}},
            static_cast<double>(counts[i]));
  }
}

}  // namespace fathom
