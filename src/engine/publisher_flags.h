// The arguments that turn an engine's KV events on, with replay. The replay port leaves room for
// the event ports of a hundred ranks.
#pragma once

#include <string_view>

namespace fathom {

inline constexpr std::string_view kVllmPublisherFlags =
    R"(--kv-events-config '{"enable_kv_cache_events": true, "publisher": "zmq", "endpoint": "tcp://*:5557", "replay_endpoint": "tcp://*:5657"}')";
inline constexpr std::string_view kSglangPublisherFlags =
    R"(--kv-events-config '{"publisher": "zmq", "endpoint": "tcp://*:5557", "replay_endpoint": "tcp://*:5657"}')";

}  // namespace fathom
