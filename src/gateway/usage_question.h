// Shall an engine be asked how many tokens of the prompt it found cached, and how?
//
// A whole answer tells by itself. A stream tells if its request says so; where the client has not
// said anything about it, the router may, if that is how the engine is (see fleet/usage_habit.h).
//
// Threads  The request's loop.
#pragma once

#include <array>
#include <string_view>

#include "fleet/usage_habit.h"
#include "gateway/gateway_metrics.h"
#include "gateway/request_fields.h"
#include "gateway/usage_filter.h"

namespace fathom {

// Whether the client leaves it open what its stream tells. An empty object does not: to vLLM it is
// a yes.
bool LeavesUsageOpen(const RequestFields& fields);

// The body with the question in it, in pieces; the rest is as it was, byte for byte. The request
// leaves it open.
std::array<std::string_view, 3> WithUsageQuestion(std::string_view body,
                                                  const RequestFields& fields);

// One request's, for one worker after the other.
class UsageQuestion {
 public:
  enum class Policy : uint8_t { kIgnore, kOnlyRead, kMayAsk };

  UsageQuestion(Route route, const RequestFields& fields, Policy policy)
      : route_(route), open_(LeavesUsageOpen(fields)), policy_(policy) {}

  // Before each attempt. What was dropped is not asked again.
  void Consider(UsageHabits& habits);

  bool asks() const { return plan_.ask; }
  // Whether this answer may be about the question: then the request is to be sent without it.
  bool MayBeToBlame(int status) const { return asks() && (status == 400 || status == 422); }
  void Drop() { dropped_ = {habit_, plan_}; }
  // What is to be done with the answer.
  UsageWish wish() const;

  // An answer to the request without the question has this status.
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
    UsageHabit* habit = nullptr;  // whose question it was; null: none was dropped
    UsageHabit::Plan plan;
  } dropped_;
};

}  // namespace fathom
