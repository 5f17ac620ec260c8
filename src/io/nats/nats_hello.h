// What do a NATS server and a client tell each other first?
//
// The server begins: INFO with what it demands. The client answers: CONNECT with who it is, then
// what it wants to hear, and a PING whose answer shows that all of it was accepted.
//
// Files    Credentials are read at each connection, so that they may be replaced.
// Secrets  No error contains one.
// Threads  Any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/nats/nats_options.h"
#include "io/net/tls.h"

namespace fathom {

struct NatsInfo {
  bool tls_required = false;
  bool tls_available = false;
  std::string nonce;  // to be signed with an nkey
  size_t max_payload = 1 << 20;

  static Result<NatsInfo> Parse(std::string_view json);
};

struct NatsPlace {
  std::string host;  // an IPv6 address without its brackets
  uint16_t port = 0;
  bool tls = false;

  // "nats://HOST:PORT" or "tls://HOST:PORT".
  static Result<NatsPlace> Parse(std::string_view url);
};

// The client's part, as it is sent.
Result<std::string> NatsHello(const NatsOptions& options, const NatsInfo& info,
                              const std::vector<std::string>& subjects);

// Whom the client trusts, and its own certificate.
Result<std::shared_ptr<const TlsClientContext>> NatsTls(const NatsOptions& options);

// It has no blanks and no line ends, which would be other parts of a line, or other lines.
bool IsNatsSubject(std::string_view text);

}  // namespace fathom
