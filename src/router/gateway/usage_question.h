// Should an engine be asked how many prompt tokens it found cached, and how?
//
// An answer that is not streamed always contains usage. A stream contains it if its request asks;
// if the client left that open, the router may ask, depending on the engine (see
// fleet/usage_habit.h).
//
// Threads  The request's loop.
#pragma once

#include <array>
#include <string_view>

#include "router/fleet/usage_habit.h"
#include "router/gateway/gateway_metrics.h"
#include "router/gateway/request_fields.h"
#include "router/gateway/usage_filter.h"

namespace fathom {

// Whether the client leaves open if its stream contains usage. An empty object does not: vLLM takes
// it as a yes.
bool LeavesUsageOpen(const RequestFields& fields);

// The body with the question inserted, in pieces; the rest is unchanged, byte for byte.
// Precondition: LeavesUsageOpen().
std::array<std::string_view, 3> WithUsageQuestion(std::string_view body,
                                                  const RequestFields& fields);

// For one request, over all its attempts.
class UsageQuestion {
 public:
  enum class Policy : uint8_t { kIgnore, kOnlyRead, kMayAsk };

  UsageQuestion(Route route, const RequestFields& fields, Policy policy)
      : route_(route), open_(LeavesUsageOpen(fields)), policy_(policy) {}

  // Call before each attempt. A dropped question is not asked again.
  void Consider(UsageHabits& habits);

  bool asks() const { return plan_.ask; }
  // Whether the question may have caused this answer; then the request is sent again without it.
  bool MayBeToBlame(int status) const { return asks() && (status == 400 || status == 422); }
  void Drop() { dropped_ = {habit_, plan_}; }
  // What the relay must do with the answer.
  UsageWish wish() const;

  // The request without the question was answered with this status.
  void Answered(int status);
  // The answer is complete.
  void Learn(const UsageFilter& stream);

 private:
  const Route route_;
  const bool open_;
  const Policy policy_;
  UsageHabit* habit_ = nullptr;  // of the worker that is being asked
  UsageHabit::Plan plan_;
  struct Dropped {
    UsageHabit* habit = nullptr;  // of the worker that refused it; null: none was dropped
    UsageHabit::Plan plan;
  } dropped_;
};

}  // namespace fathom
