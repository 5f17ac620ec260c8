// How does the doctor ask a server something without changing anything there?
//
// The only way in which it speaks HTTP. There is a list of requests that take nothing away and
// start nothing; whatever is not on it is refused here and never sent. Some depend on who answers:
//
//   GET /metrics           TensorRT-LLM hands out each iteration once, so an engine must first be
//                          known as another one, or the operator has allowed it (--drain)
//   POST /kv_cache_events  hands out each event once: only with --drain
//   GET /health            SGLang runs a token for it when it is idle: only engines known as others
//   POST /tokenize         computes an answer and keeps nothing
//
// Threads  On the loop.
// Memory   One answer at a time per call, of at most kMaxAnswer bytes.
// Errors   The peer's: refused, timed out, too long. Statuses other than 200 are answers. The
//          caller's: a request that is not on the list.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/findings/report.h"
#include "engine/engine_kind.h"
#include "io/http/fetch.h"

namespace fathom {

enum class ServerKind : uint8_t { kRouter, kEngine, kDynamo, kExporter };

struct ReadOnlyRequest {
  enum class When : uint8_t { kAlways, kDrainsNothing, kRunsNothing, kMayDrain };
  ServerKind server;
  std::string_view method;
  std::string_view path;  // without its query
  When when;
};
std::span<const ReadOnlyRequest> ReadOnlyRequests();

// What was sent, to everybody together.
//
// Memory  By method and URL, at most kMost; those beyond are counted under the last.
class SentRequests {
 public:
  static constexpr size_t kMost = 4096;

  void Count(std::string_view method, const std::string& target);
  std::vector<SentRequest> All() const;

 private:
  std::map<std::pair<std::string, std::string>, uint64_t> times_;
};

class ReadOnlyClient {
 public:
  static constexpr size_t kMaxAnswer = size_t{16} << 20;

  struct Target {
    ServerKind server = ServerKind::kEngine;
    Endpoint endpoint;
    std::string key;  // sent as Authorization: Bearer; empty: none
    Duration patience = std::chrono::seconds(5);
    bool drain = false;
  };

  ReadOnlyClient(Loop& loop, Resolver& resolver, SentRequests& sent, Target target)
      : loop_(loop), resolver_(resolver), sent_(sent), target_(std::move(target)) {}

  // The path may have a query.
  Task<Result<FetchAnswer>> Get(std::string path);
  // A POST that only asks. The body is JSON.
  Task<Result<FetchAnswer>> Ask(std::string path, std::string body);

  // Which engine it is, once that is known; some requests wait for it.
  void Recognise(EngineKind engine) { engine_ = engine; }

  Loop& loop() const { return loop_; }
  std::string url() const { return target_.endpoint.url.ToString(); }
  const std::string& host() const { return target_.endpoint.url.host; }
  bool drain() const { return target_.drain; }

 private:
  Task<Result<FetchAnswer>> Send(std::string_view method, std::string path, std::string body);
  Result<void> Check(std::string_view method, std::string_view path) const;

  Loop& loop_;
  Resolver& resolver_;
  SentRequests& sent_;
  const Target target_;
  EngineKind engine_ = EngineKind::kUnknown;
};

// A server to ask, whose certificate is verified against `ca_file`, or the system's where that is
// empty; an error of the caller's for what is no URL.
Result<Endpoint> EndpointOf(const std::string& url, const std::string& ca_file = {});

// Why there is no answer to use, in words: "connection refused", "answered 503", "wants a key: give
// one with --api-key". Empty: there is one.
std::string WhyNot(const Result<FetchAnswer>& answer, std::string_view key_option);

}  // namespace fathom
