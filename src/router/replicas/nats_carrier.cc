#include "router/replicas/nats_carrier.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace fathom {
namespace {

// Each server that is tried may have a problem of its own.
constexpr RepeatRule kCarrierLines{.freely = 4, .pause = std::chrono::minutes(1)};

std::string SubjectToken(std::string_view name) {
  std::string token(name);
  std::ranges::replace(token, '.', '~');
  return token;
}

std::string PrefixOf(std::string_view group) {
  return fmt::format("fathom.{}.", SubjectToken(group));
}

std::vector<std::string> SubjectsOf(std::string_view group, std::string_view id) {
  const std::string prefix = PrefixOf(group);
  return {prefix + "all", prefix + "to." + SubjectToken(id)};
}

NatsOptions Completed(NatsOptions options, std::string_view id) {
  options.name = fmt::format("fathom {}", id);
  options.longest_message = NatsCarrier::kLongestMessage;
  return options;
}

}  // namespace

NatsCarrier::NatsCarrier(Loop& loop, Resolver& resolver, Log& log, std::string_view group,
                         std::string_view id, NatsOptions options)
    : loop_(loop),
      log_(log),
      prefix_(PrefixOf(group)),
      servers_(fmt::format("{}", fmt::join(options.urls, ","))),
      client_(loop, resolver, Completed(std::move(options), id), SubjectsOf(group, id)) {}

std::string NatsCarrier::SubjectOf(std::string_view replica) const {
  return prefix_ + "to." + SubjectToken(replica);
}

void NatsCarrier::Start(OnMessage on_message) {
  client_.Start(std::move(on_message),
                [this](bool up, const std::string& problem) { Changed(up, problem); });
}

void NatsCarrier::Stop() { client_.Stop(); }

bool NatsCarrier::Publish(std::string_view message) {
  return client_.Publish(prefix_ + "all", message);
}

bool NatsCarrier::Send(std::string_view replica, std::string_view message) {
  return client_.PublishBulk(SubjectOf(replica), message);
}

void NatsCarrier::Changed(bool up, const std::string& problem) {
  if (up && problem.empty()) {
    if (std::exchange(logged_down_, false)) {
      log_.Info("Replicas are reached again through NATS", {{"servers", servers_}});
    }
    return;
  }
  const auto suppressed = problem_lines_.Next(loop_.now(), kCarrierLines);
  if (!suppressed) return;
  if (up) {
    log_.Warn("NATS does not carry all messages of the replicas",
              {{"problem", problem}, {"servers", servers_}, {"suppressed", *suppressed}});
    return;
  }
  logged_down_ = true;
  log_.Warn(
      "Replicas are not reached: no connection to NATS; requests are served without their "
      "state",
      {{"problem", problem}, {"servers", servers_}, {"suppressed", *suppressed}});
}

Carrier::Status NatsCarrier::status() const {
  const NatsStatus status = client_.status();
  return {.up = status.up,
          .problem = status.problem,
          .awaits = !status.up,
          .dropped = status.dropped,
          .sent_bytes = status.sent_bytes,
          .received_bytes = status.received_bytes};
}

}  // namespace fathom
