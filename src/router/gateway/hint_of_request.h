// Which hint does this request give about its session?
//
// Agents name their session in a header, or in a member of the body. The first one of the order
// that is present counts. Values are compared, never shown: they can name a person.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "codec/header_list.h"
#include "router/gateway/request_fields.h"
#include "router/routing/session_hints.h"

namespace fathom {

struct HintOfRequest {
  HintKind kind;
  std::string_view value;      // in the request's head or body, as the client wrote it
  std::string_view part = {};  // of the session; or empty
  bool names_session = true;   // else a user, who may have several
};

// Longer values are no hints: no client needs them.
constexpr size_t kLongestHint = 1024;
constexpr size_t kLongestMetadata = 16 << 10;

std::optional<HintOfRequest> FindHint(std::span<const HintKind> order, const HeaderList& headers,
                                      const RequestFields& fields);

}  // namespace fathom
