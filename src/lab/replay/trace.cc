#include "lab/replay/trace.h"

#include <algorithm>
#include <fstream>
#include <limits>

#include "codec/json.h"

namespace fathom {
namespace {

Result<TraceRequest> RequestOf(const Json& line) {
  const auto number = [&](std::string_view key) {
    const Json* const value = line.Find(key);
    return value == nullptr ? 0 : value->unsigned_integer().value_or(0);
  };
  const auto tokens = [&](std::string_view key) {
    constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
    return static_cast<uint32_t>(std::clamp<uint64_t>(number(key), 1, kMost));
  };
  TraceRequest request;
  request.at = std::chrono::milliseconds(number("timestamp"));
  request.input = tokens("input_length");
  request.output = tokens("output_length");
  const Json* const ids = line.Find("hash_ids");
  if (ids == nullptr || ids->array() == nullptr || ids->array()->empty()) {
    return Fail(Blame::kCaller, "a line without hash_ids");
  }
  for (const Json& id : *ids->array()) request.ids.push_back(id.unsigned_integer().value_or(0));
  return request;
}

}  // namespace

Result<std::vector<TraceRequest>> ReadTrace(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Fail(Blame::kCaller, "cannot read the trace {}", path);
  std::vector<TraceRequest> trace;
  for (std::string line; std::getline(file, line);) {
    const auto json = Json::Parse(line);
    if (!json) return std::unexpected(Error(json.error()).In(path));
    auto request = RequestOf(*json);
    if (!request) return std::unexpected(std::move(request).error().In(path));
    trace.push_back(*std::move(request));
  }
  if (trace.empty()) return Fail(Blame::kCaller, "the trace {} is empty", path);
  return trace;
}

uint64_t IdsEnd(const std::vector<TraceRequest>& trace) {
  uint64_t end = 0;
  for (const TraceRequest& request : trace) {
    for (const uint64_t id : request.ids) end = std::max(end, id + 1);
  }
  return end;
}

std::vector<TokenId> PromptOf(const TraceRequest& request, uint64_t shift) {
  std::vector<TokenId> prompt(request.input);
  for (size_t i = 0; i < prompt.size(); ++i) {
    const size_t block = std::min<size_t>(i / kTokensPerTraceId, request.ids.size() - 1);
    const uint64_t id = request.ids[block] + shift;
    prompt[i] = static_cast<TokenId>(id * kTokensPerTraceId + i % kTokensPerTraceId);
  }
  return prompt;
}

}  // namespace fathom
