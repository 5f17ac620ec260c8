#include "router/sources/event_template.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace fathom {
namespace {

constexpr uint32_t kLastPort = 65535;

bool StandsForEach(std::string_view host, std::string_view name) {
  constexpr std::string_view kWildcards[] = {"*", "0.0.0.0", "::", "[::]"};
  return host == name || std::ranges::count(kWildcards, host) > 0;
}

}  // namespace

Result<EventTemplate> EventTemplate::Parse(std::string_view text, std::string_view key,
                                           std::string_view name) {
  constexpr std::string_view kTcp = "tcp://";
  const size_t colon = text.rfind(':');
  if (text.starts_with(kTcp) && colon != std::string_view::npos && colon >= kTcp.size()) {
    const std::string_view host = text.substr(kTcp.size(), colon - kTcp.size());
    std::string_view port = text.substr(colon + 1);
    EventTemplate found;
    found.offset_ = port.starts_with('+');
    if (found.offset_) port.remove_prefix(1);
    const auto number = ParseDecimal(port);
    if (StandsForEach(host, name) && number && *number > 0 && *number <= kLastPort) {
      found.number_ = static_cast<uint16_t>(*number);
      return found;
    }
  }
  return Fail(Blame::kCaller,
              "{} '{}' cannot apply to every address; write tcp://*:PORT for this port on each "
              "of them, or tcp://*:+N for the worker's own port plus N",
              key, text.substr(0, 100));
}

Result<std::string> EventTemplate::At(const std::string& host, uint16_t port) const {
  const uint32_t sum = offset_ ? uint32_t{port} + number_ : number_;
  if (sum > kLastPort) {
    return Fail(Blame::kCaller, "the port of its events would be {} + {}, which is no port", port,
                number_);
  }
  return host.contains(':') ? fmt::format("tcp://[{}]:{}", host, sum)
                            : fmt::format("tcp://{}:{}", host, sum);
}

}  // namespace fathom
