// How does an OpenAI endpoint serve a trace? Plays it over real sockets, each request when it is
// due.
#pragma once

#include <span>
#include <string_view>

namespace fathom {

// fathom bench trace URL TRACE [NAME=VALUE]... Prints one JSON object; returns an exit status.
int RunBenchTrace(std::span<const std::string_view> args);

}  // namespace fathom
