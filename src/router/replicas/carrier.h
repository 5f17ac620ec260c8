// How do messages reach the other replicas of the group?
//
// Best effort: a message may be lost, come twice or out of order, and nobody is told. A carrier
// that is down loses messages; it connects again by itself.
//
// Threads  The replicas' loop.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace fathom {

class Carrier {
 public:
  virtual ~Carrier() = default;

  using OnMessage = std::function<void(std::string_view bytes)>;
  // Returns at once; connects in the background.
  virtual void Start(OnMessage on_message) = 0;
  virtual void Stop() = 0;

  // To all others; a copy may come back to us. False: it was dropped, because nothing is connected
  // or too much waits.
  virtual bool Publish(std::string_view message) = 0;
  // To one, if it can be reached alone; otherwise to all.
  virtual bool Send(std::string_view replica, std::string_view message) = 0;

  struct Status {
    bool up = false;       // messages leave and arrive
    std::string problem;   // why not, for operators; without credentials
    bool awaits = false;   // others are there, or may be, that cannot speak to us yet
    uint64_t dropped = 0;  // messages that did not leave
    uint64_t sent_bytes = 0;
    uint64_t received_bytes = 0;
  };
  virtual Status status() const = 0;
};

}  // namespace fathom
