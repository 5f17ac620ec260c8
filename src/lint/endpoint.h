// Where does a publisher listen?
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fathom {

// "tcp://0.0.0.0:5557", in its parts.
struct Endpoint {
  std::string transport;  // "tcp"
  std::string host;       // as written, "[::]" with its brackets
  std::optional<uint16_t> port;

  static std::optional<Endpoint> Parse(std::string_view text);

  // What vLLM and SGLang go by: everything else makes the publisher connect.
  bool binds() const;
  bool any_address() const { return host == "0.0.0.0"; }
};

}  // namespace fathom
