#include "io/kube/kube_outage.h"

#include <algorithm>
#include <utility>

namespace fathom {

KubeCause CauseOfStatus(int status) {
  if (status == 401) return KubeCause::kCredentials;
  if (status == 403) return KubeCause::kRights;
  if (status == 404) return KubeCause::kUnknown;
  const bool later = status == 0 || status == 408 || status == 429 || status >= 500;
  return later ? KubeCause::kAway : KubeCause::kNonsense;
}

bool KubeOutage::Fails(KubeCause cause, TimePoint now) {
  if (!since_) since_ = now;
  const bool again = std::exchange(last_, cause) == cause;
  const bool doubtful = cause == KubeCause::kRights && !again;
  if (doubtful || told_ == cause) return false;
  told_ = cause;
  return true;
}

bool KubeOutage::Works() {
  next_ = first_;
  since_.reset();
  last_ = KubeCause::kNone;
  return std::exchange(told_, KubeCause::kNone) != KubeCause::kNone;
}

Duration KubeOutage::Pause() {
  const Duration whole = std::exchange(next_, std::min(next_ * 2, longest_));
  return Between(whole / 2, whole);
}

Duration KubeOutage::Between(Duration least, Duration most) {
  const auto span = static_cast<uint64_t>(std::max<int64_t>((most - least).count(), 0));
  return least + Duration(static_cast<int64_t>(random_.Below(span + 1)));
}

}  // namespace fathom
