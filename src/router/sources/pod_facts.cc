#include "router/sources/pod_facts.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "router/sources/kube_json.h"

namespace fathom {
namespace {

constexpr std::string_view kOurs = "fathom.io/";
constexpr std::string_view kLlmD = "llm-d.ai/";

bool IsKnownPrefix(std::string_view name) {
  return name.starts_with(kOurs) || name.starts_with(kLlmD);
}

bool IsKeptAnnotation(std::string_view name) {
  return IsKnownPrefix(name) || name == "sglang.ai/bootstrap-port" ||
         name == "vllm.ai/bootstrap-port";
}

// Written by controllers; they differ from revision to revision, or repeat the pod's name.
bool IsRevision(std::string_view name) {
  constexpr std::string_view kRevisions[] = {"pod-template-hash", "controller-revision-hash",
                                             "pod-template-generation",
                                             "statefulset.kubernetes.io/pod-name"};
  return std::ranges::count(kRevisions, name) > 0;
}

std::string_view Said(const Json& pod, std::string_view name) {
  const std::string_view label = KubeText(pod, {"metadata", "labels", name});
  return label.empty() ? KubeText(pod, {"metadata", "annotations", name}) : label;
}

// llm-d's roles of several parts, e.g. prefill-decode, have dashes between them.
std::string RoleOf(std::string_view role) {
  const bool prefill = role.contains("prefill");
  const bool decode = role.contains("decode");
  if (role == "both" || (prefill && decode)) return "both";
  return role == "prefill" || role == "decode" ? std::string(role) : std::string();
}

std::optional<uint16_t> PortSaid(const Json& pod, std::string_view name) {
  const auto number = ParseDecimal(Said(pod, name));
  if (!number || *number == 0 || *number > 65535) return std::nullopt;
  return static_cast<uint16_t>(*number);
}

class LabelShelf {
 public:
  void Keep(const std::string& name, const Json& value) {
    const std::string* const text = value.string();
    if (text == nullptr || labels_.size() >= PodFacts::kMaxLabels) return;
    const size_t bytes = name.size() + text->size();
    if (bytes_ + bytes > PodFacts::kMaxBytes) return;
    if (labels_.try_emplace(name, *text).second) bytes_ += bytes;
  }
  std::map<std::string, std::string> Take() { return std::move(labels_); }

 private:
  std::map<std::string, std::string> labels_;
  size_t bytes_ = 0;
};

std::map<std::string, std::string> LabelsOf(const Json& pod) {
  LabelShelf shelf;
  const Json::Object& labels = KubeMap(pod, {"metadata", "labels"});
  for (const auto& [name, value] : labels) {
    if (IsKnownPrefix(name)) shelf.Keep(name, value);
  }
  for (const auto& [name, value] : KubeMap(pod, {"metadata", "annotations"})) {
    if (IsKeptAnnotation(name)) shelf.Keep(name, value);
  }
  for (const auto& [name, value] : labels) {
    if (!IsRevision(name)) shelf.Keep(name, value);
  }
  return shelf.Take();
}

}  // namespace

PodFacts PodFacts::Of(const Json& pod) {
  PodFacts facts;
  const std::string_view ours = Said(pod, "fathom.io/role");
  facts.role = RoleOf(ours.empty() ? Said(pod, "llm-d.ai/role") : ours);
  facts.events_port = PortSaid(pod, "fathom.io/kv-events-port");
  facts.replay_port = PortSaid(pod, "fathom.io/kv-events-replay-port");
  if (const auto topic = Said(pod, "fathom.io/kv-events-topic"); !topic.empty()) {
    facts.topic = std::string(topic.substr(0, 255));
  }
  facts.labels = LabelsOf(pod);
  return facts;
}

}  // namespace fathom
