#include "diagnose/lint/endpoint.h"

#include <fmt/format.h>

#include "base/text.h"

namespace fathom {

std::optional<PublisherEndpoint> PublisherEndpoint::Parse(std::string_view text) {
  const size_t colon = text.find("://");
  if (colon == std::string_view::npos) return std::nullopt;
  PublisherEndpoint endpoint;
  endpoint.transport = text.substr(0, colon);
  const std::string_view address = text.substr(colon + 3);
  const size_t last = address.rfind(':');
  const auto port =
      last == std::string_view::npos ? std::nullopt : ParseDecimal(address.substr(last + 1));
  const size_t variable = port ? std::string_view::npos : address.find(":$");
  endpoint.host = address.substr(0, port ? last : variable);
  if (port && *port <= UINT16_MAX) endpoint.port = static_cast<uint16_t>(*port);
  if (variable != std::string_view::npos) endpoint.port_variable = address.substr(variable + 1);
  return endpoint;
}

std::string PublisherEndpoint::Bound() const {
  if (!port_variable.empty()) return fmt::format("tcp://*:{}", port_variable);
  return fmt::format("tcp://*:{}", port.value_or(5557));
}

bool PublisherEndpoint::binds() const {
  return transport == "ipc" || transport == "inproc" || host.contains('*') || host.contains("::");
}

}  // namespace fathom
