// Where does an engine publish its KV events?
//
// vLLM (GET /kv_event_sources) and SGLang (GET /server_info) say it themselves, in bodies that are
// read here. What they say is from their point of view: a publisher that listens on every interface
// ("tcp://*:5557") is reached at the worker's own host.
//
// Errors  A body that is not such an answer, or that names what cannot be (a port of 70000), is an
//         error of the peer. An engine that answers well and publishes nothing is not: then there
//         are no sources, and `problem` says why and what to do about it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fathom {

constexpr uint32_t kMaxEventRanks = 1024;
constexpr uint16_t kDefaultEventPort = 5557;  // of rank 0, where an engine does not say

struct EventSource {
  uint32_t rank = 0;
  std::string endpoint;    // to connect a SUB to
  std::string replay;      // to connect a DEALER to; empty: missed batches cannot be asked for
  std::string topic;       // to subscribe to; empty: all
  bool dials_out = false;  // the engine connects to `endpoint` itself: somebody has to bind there
  friend bool operator==(const EventSource&, const EventSource&) = default;
};

struct EventSources {
  std::vector<EventSource> sources;  // by rank, each once
  std::string problem;               // why there are none, one line with the fix
  bool off = false;                  // because the engine publishes none
};

// vLLM's answer. `worker_host` is a name or an address, IPv6 with or without brackets.
Result<EventSources> ParseKvEventSources(std::string_view body, std::string_view worker_host);

// SGLang's answer; also of releases that repeat only their --kv-events-config. An answer that says
// nothing at all about KV events is another engine's, and an error.
Result<EventSources> ParseServerInfo(std::string_view body, std::string_view worker_host);

// The endpoint with `host` in place of a wildcard (*, 0.0.0.0, ::). Any other stays as it is.
std::string WithHost(std::string endpoint, std::string_view host);

// The endpoint of a rank from that of rank 0: tcp://h:5557 and 2 is tcp://h:5559. Endpoints without
// a port have no offset but 0.
Result<std::string> WithPortOffset(std::string_view endpoint, uint32_t offset);

}  // namespace fathom
