#include "diagnose/doctor/kube_pod.h"

#include <algorithm>

namespace fathom {
namespace {

const Json* Down(const Json* value, std::string_view name) {
  return value == nullptr ? nullptr : value->Find(name);
}

std::string Text(const Json* value, std::string_view name) {
  const Json* const member = Down(value, name);
  return member == nullptr || member->string() == nullptr ? "" : *member->string();
}

const Json::Array& Items(const Json* value, std::string_view name) {
  static const Json::Array kNone;
  const Json* const member = Down(value, name);
  return member == nullptr || member->array() == nullptr ? kNone : *member->array();
}

bool IsTrue(const Json* value, std::string_view name) {
  const Json* const member = Down(value, name);
  return member != nullptr && member->boolean() != nullptr && *member->boolean();
}

std::string OwnerOf(const Json* metadata) {
  for (const Json& owner : Items(metadata, "ownerReferences")) {
    if (IsTrue(&owner, "controller")) return Text(&owner, "kind") + " " + Text(&owner, "name");
  }
  return "";
}

bool IsReady(const Json* status) {
  return std::ranges::any_of(Items(status, "conditions"), [](const Json& condition) {
    return Text(&condition, "type") == "Ready" && Text(&condition, "status") == "True";
  });
}

// How it ended: now, if it does not run any more, otherwise the time before.
void ReadEnd(const Json& status, KubeContainer& container) {
  const Json* end = Down(status.Find("state"), "terminated");
  if (end == nullptr) end = Down(status.Find("lastState"), "terminated");
  container.last_ended = Text(end, "reason");
  const Json* const code = Down(end, "exitCode");
  const std::optional<double> number = code == nullptr ? std::nullopt : code->number();
  if (number && *number >= -1e6 && *number <= 1e6) container.last_exit = static_cast<int>(*number);
}

void ReadStatus(const Json& status, KubeContainer& container) {
  container.image_id = Text(&status, "imageID");
  container.ready = IsTrue(&status, "ready");
  container.waiting = Text(Down(status.Find("state"), "waiting"), "reason");
  const Json* const restarts = status.Find("restartCount");
  if (restarts != nullptr) container.restarts = restarts->unsigned_integer().value_or(0);
  ReadEnd(status, container);
}

}  // namespace

uint64_t KubePod::Restarts() const {
  uint64_t sum = 0;
  for (const KubeContainer& container : containers) sum += container.restarts;
  return sum;
}

bool KubePod::OutOfMemory() const {
  return std::ranges::any_of(containers, [](const KubeContainer& container) {
    return container.last_ended == "OOMKilled";
  });
}

KubePod ReadPod(const Json& object) {
  const Json* const metadata = object.Find("metadata");
  const Json* const spec = object.Find("spec");
  const Json* const status = object.Find("status");
  KubePod pod;
  pod.name = Text(metadata, "name");
  pod.owner = OwnerOf(metadata);
  pod.node = Text(spec, "nodeName");
  pod.phase = Text(status, "phase");
  pod.reason = Text(status, "reason");
  pod.ready = IsReady(status);
  for (const Json& item : Items(spec, "containers")) {
    KubeContainer container;
    container.name = Text(&item, "name");
    container.image = Text(&item, "image");
    for (const Json& state : Items(status, "containerStatuses")) {
      if (Text(&state, "name") == container.name) ReadStatus(state, container);
    }
    pod.containers.push_back(std::move(container));
  }
  return pod;
}

}  // namespace fathom
