// Why could a name not be looked up, a server not be reached, an exchange not be completed?
//
//   const NetResult<FetchAnswer> answer = co_await fetching;
//   if (!answer && answer.error().cause == NetCause::kRefused) ...
//
// Code decides by the cause; the text is for people alone. A NetError is an Error with a cause, and
// a NetResult converts to a Result.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace fathom {

enum class NetCause : uint8_t {
  kOther,
  // The name was not looked up.
  kBadName,      // the text is not the name of a host
  kNoSuchName,   // a name server reports that it does not exist, or has no address
  kNameTimeout,  // no name server answered in time
  kNameServer,   // the name servers refused, failed, or sent an answer that cannot be read
  // The server was not reached.
  kRefused,  // no process listens there
  kUnreachable,
  kTimeout,
  kTls,
  // An established connection ended too early.
  kBroken,
  kBadAnswer,
  // On this side.
  kCancelled,
  kNoResources,  // descriptors, or places for questions
};

// "refused", "no_such_name": for logs and labels.
std::string_view Name(NetCause cause);

struct NetError : Error {
  NetCause cause = NetCause::kOther;

  NetError In(std::string_view context) && {
    what.insert(0, ": ").insert(0, context);
    return std::move(*this);
  }
};

template <class T = void>
using NetResult = std::expected<T, NetError>;

template <class... Args>
std::unexpected<NetError> NetFail(NetCause cause, fmt::format_string<Args...> text,
                                  Args&&... args) {
  const Blame blame = cause == NetCause::kNoResources ? Blame::kOverload : Blame::kPeer;
  return std::unexpected(NetError{{blame, fmt::format(text, std::forward<Args>(args)...)}, cause});
}

// Of a failed connect(2).
NetCause CauseOfErrno(int error);
std::string DescribeErrno(int error);

}  // namespace fathom
