// May this request use the admin and debug routes of its listener?
//
// A page in an operator's browser must not: such requests come from the operator's machine, with
// the operator's access. They are recognised by what scripts cannot change: the Origin, the type of
// a body that needs no permission of the server, and, after DNS rebinding, the name in Host.
//
// Threads  Any.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "codec/http_head.h"
#include "io/http/server_connection.h"
#include "router/gateway/key_ring.h"

namespace fathom {

// What one listener does with the admin and debug routes.
struct AdminRules {
  bool elsewhere = false;  // another listener has them
  bool closed = false;     // clients need keys, and operators have none
  bool loopback = true;    // the listener is reachable from this machine only
};

class AdminDoor {
 public:
  AdminDoor(const KeyRing& keys, const AdminRules& rules) : keys_(keys), rules_(rules) {}

  // The routes that need it: /workers and /debug/, where the listener has them.
  bool Guards(std::string_view path) const;

  // Why the request may not use them; nullopt if it may.
  std::optional<Answer> Refuse(const RequestHead& head) const;

  // Whether pages that everyone may read contain what only operators may see.
  bool ShowsAll(const RequestHead& head) const;

  // A page of another origin in an operator's browser may have sent it.
  bool IsForeign(const RequestHead& head) const { return ForeignPart(head) != Problem::kNone; }

 private:
  enum class Problem : uint8_t { kNone, kForeignHost, kForeignOrigin, kClosed, kNoKey, kNotJson };

  Problem ForeignPart(const RequestHead& head) const;
  Problem ProblemOf(const RequestHead& head) const;

  const KeyRing& keys_;
  const AdminRules rules_;
};

}  // namespace fathom
