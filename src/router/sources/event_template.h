// Where are the events of each worker of a source? One line for all of them:
//
//   tcp://*:5557     this port on each worker's host
//   tcp://*:+1000    the worker's own port plus 1000, for several workers on one host
//
// In place of * may stand 0.0.0.0, ::, or the name of the source itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fathom {

class EventTemplate {
 public:
  // `key` is for errors; `name` is the host that may stand in place of *.
  static Result<EventTemplate> Parse(std::string_view text, std::string_view key,
                                     std::string_view name = "*");

  // At a worker. `host` is an IP address or a name, IPv6 without brackets. Fails if the sum is not
  // a port.
  Result<std::string> At(const std::string& host, uint16_t port) const;

 private:
  uint16_t number_ = 0;
  bool offset_ = false;  // the number is added to the worker's port
};

}  // namespace fathom
