// Which worker do the messages of this topic belong to?
//
// Needed where all engines publish to one port of the router. A topic belongs to the worker whose
// kv_events_topic it is, else to the worker whose host:port it contains as a whole:
// "kv@10.0.0.1:8000@model" contains 10.0.0.1:8000, but not 10.0.0.1:80 and not 0.0.0.1:8000.
//
// A topic of several workers belongs to none: events of another engine's cache are worse than none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fathom {

// What a worker's topics look like.
struct TopicClaim {
  std::optional<std::string> topic;  // the operator's kv_events_topic
  std::string host;                  // an IPv6 address without brackets
  uint16_t port = 0;
};

// The position of the worker; nullopt: none, or several.
std::optional<size_t> OwnerOfTopic(std::string_view topic, std::span<const TopicClaim> claims);

}  // namespace fathom
