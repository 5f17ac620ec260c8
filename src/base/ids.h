// Types for identifiers that must not be confused with each other.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string_view>

namespace fathom {

// An opaque number that is the same for the same worker URL, in every process and after every
// restart. Below 2^53, so that it survives JavaScript and JSON.
class WorkerId {
 public:
  constexpr WorkerId() = default;
  constexpr explicit WorkerId(uint64_t value) : value_(value) {}
  static WorkerId OfUrl(std::string_view url);

  constexpr uint64_t value() const { return value_; }
  friend constexpr auto operator<=>(WorkerId, WorkerId) = default;

 private:
  uint64_t value_ = 0;
};

}  // namespace fathom

template <>
struct std::hash<fathom::WorkerId> {
  size_t operator()(fathom::WorkerId id) const { return id.value(); }
};
