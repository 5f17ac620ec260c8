// Where does an engine publish its KV events?
//
// vLLM (GET /kv_event_sources) and SGLang (GET /server_info) report it in bodies that are parsed
// here. Addresses in them are from the engine's point of view: a publisher that listens on every
// interface ("tcp://*:5557") is reached at the worker's own host.
//
// Errors  A body in another format, or with an impossible value (port 70000), is an error of the
//         peer. A valid body of an engine that publishes nothing is no error: `sources` is empty,
//         and `problem` has the reason and the fix.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fathom {

constexpr uint32_t kMaxEventRanks = 1024;
constexpr uint16_t kDefaultEventPort = 5557;  // of rank 0, if the engine reports no port

struct EventSource {
  uint32_t rank = 0;
  std::string endpoint;    // for a SUB socket to connect to
  std::string replay;      // for a DEALER socket to connect to; empty: no replay
  std::string topic;       // to subscribe to; empty: all
  bool dials_out = false;  // the engine connects to `endpoint`, so a SUB must bind there
  friend bool operator==(const EventSource&, const EventSource&) = default;
};

struct EventSources {
  std::vector<EventSource> sources;  // sorted by rank, one per rank
  std::string problem;               // why `sources` is empty, in one line with the fix
  bool off = false;                  // `sources` is empty because the engine's publisher is off
};

// Reads vLLM's answer. `worker_host` is a name or an address, IPv6 with or without brackets.
Result<EventSources> ParseKvEventSources(std::string_view body, std::string_view worker_host);

// Reads SGLang's answer, including that of releases which report only their --kv-events-config. An
// answer that does not mention KV events is from another engine, and an error.
Result<EventSources> ParseServerInfo(std::string_view body, std::string_view worker_host);

// The endpoint with `host` in place of a wildcard (*, 0.0.0.0, ::). Other endpoints are unchanged.
std::string WithHost(std::string endpoint, std::string_view host);

// The endpoint of a rank from that of rank 0: tcp://h:5557 and offset 2 give tcp://h:5559. For an
// endpoint without a port, only offset 0 is valid.
Result<std::string> WithPortOffset(std::string_view endpoint, uint32_t offset);

}  // namespace fathom
