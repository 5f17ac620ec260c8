// Where does a publisher listen?
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fathom {

// "tcp://0.0.0.0:5557", in its parts.
struct PublisherEndpoint {
  std::string transport;  // "tcp"
  std::string host;       // as written, "[::]" with its brackets
  std::optional<uint16_t> port;
  std::string port_variable;  // "$EVENTS" where the port is no number

  static std::optional<PublisherEndpoint> Parse(std::string_view text);

  // What vLLM and SGLang go by: everything else makes the publisher connect.
  bool binds() const;
  bool any_address() const { return host == "0.0.0.0"; }
  // A publisher that connects there finds only what runs beside it.
  bool local() const { return any_address() || host == "127.0.0.1" || host == "localhost"; }
  // The same port, of every address: "tcp://*:5557".
  std::string Bound() const;
};

}  // namespace fathom
