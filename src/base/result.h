// What failed, and who has to act on it?
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace fathom {

// Decides what the receiver of an Error does next.
enum class Blame : uint8_t {
  kCaller,    // the request or the configuration is wrong: refuse it, never retry
  kPeer,      // the other end failed: another one may succeed
  kOverload,  // a peer has no capacity: back off, then retry
};

struct Error {
  Blame blame;
  std::string what;  // one line for a human, no trailing period

  // Adds the place of the error: "config.yaml: unknown key 'prot'".
  Error In(std::string_view context) && {
    what.insert(0, ": ").insert(0, context);
    return std::move(*this);
  }
};

template <class T = void>
using Result = std::expected<T, Error>;

template <class... Args>
std::unexpected<Error> Fail(Blame blame, fmt::format_string<Args...> text, Args&&... args) {
  return std::unexpected(Error{blame, fmt::format(text, std::forward<Args>(args)...)});
}

}  // namespace fathom

#define FATHOM_CONCAT_IMPL_(a, b) a##b
#define FATHOM_CONCAT_(a, b) FATHOM_CONCAT_IMPL_(a, b)
#define FATHOM_TRY_IMPL_(tmp, ret, decl, expr)           \
  auto tmp = (expr);                                     \
  if (!tmp) ret std::unexpected(std::move(tmp).error()); \
  decl = *std::move(tmp)

// TRY(auto port, ParsePort(text)); binds the value, or returns the error to the caller.
// Plain statements, because g++ 12 crashes on co_await inside ({ ... }).
#define TRY(decl, expr) FATHOM_TRY_IMPL_(FATHOM_CONCAT_(try_, __LINE__), return, decl, expr)

// The same inside a coroutine.
#define TRY_CO(decl, expr) FATHOM_TRY_IMPL_(FATHOM_CONCAT_(try_, __LINE__), co_return, decl, expr)

// The same for a Result<void>.
#define TRY_VOID(expr)                                       \
  do {                                                       \
    if (auto try_result = (expr); !try_result)               \
      return std::unexpected(std::move(try_result).error()); \
  } while (false)
