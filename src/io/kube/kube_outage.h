// Is the API server of use to us now, who has to know that it is not, and when is it asked again?
//
// Pauses are doubled from one attempt to the next, and each is by chance between half and the whole
// of that, so that many clients of one server do not come back at once. They are short again only
// when the server has shown that it works, not when it has merely answered.
//
// An outage is told once, and again when its cause is another one. A single 403 is no verdict: a
// server that has just started refuses rights that it has not loaded yet.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/random.h"

namespace fathom {

enum class KubeCause : uint8_t {
  kNone,
  kAway,         // no answer, or one that says: later
  kCredentials,  // 401
  kRights,       // 403
  kUnknown,      // 404: there are no such objects in this cluster
  kNonsense,     // what it answers cannot be read
};
KubeCause CauseOfStatus(int status);

class KubeOutage {
 public:
  KubeOutage(Duration first_pause, Duration longest_pause, uint64_t seed)
      : first_(first_pause), longest_(longest_pause), next_(first_pause), random_(seed) {}

  // An attempt has failed. True: this has to be told.
  bool Fails(KubeCause cause, TimePoint now);
  // The server does its part. True: that has to be told.
  bool Works();
  // Before the next attempt.
  Duration Pause();

  Duration Between(Duration least, Duration most);
  // Since the first failure; 0: there is none.
  Duration Lasts(TimePoint now) const { return since_ ? now - *since_ : Duration(0); }

 private:
  const Duration first_;
  const Duration longest_;
  Duration next_;
  Random random_;
  std::optional<TimePoint> since_;
  KubeCause last_ = KubeCause::kNone;
  KubeCause told_ = KubeCause::kNone;
};

}  // namespace fathom
