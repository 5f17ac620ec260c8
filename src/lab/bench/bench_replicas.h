// Do several routers choose like one? Replays a trace in virtual time with several replicas of the
// router, which tell each other what they do late, with losses, or not at all.
#pragma once

#include <span>
#include <string_view>

namespace fathom {

// fathom bench replicas TRACE [NAME=VALUE]... Prints one JSON object; returns an exit status.
int RunBenchReplicas(std::span<const std::string_view> args);

}  // namespace fathom
