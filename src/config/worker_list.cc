#include "config/worker_list.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <sstream>

#include "base/text.h"

namespace fathom {
namespace {

struct WorkerField {
  std::string_view name;
  std::optional<std::string> WorkerEntry::* member;
  bool may_be_empty = false;
};
constexpr WorkerField kWorkerFields[] = {
    {"kv_events", &WorkerEntry::kv_events},
    {"kv_events_replay", &WorkerEntry::kv_events_replay},
    {"kv_events_topic", &WorkerEntry::kv_events_topic, true},  // vLLM's default is the empty topic
    {"api_key_env", &WorkerEntry::api_key_env},
    {"ca_file", &WorkerEntry::ca_file},
    {"role", &WorkerEntry::role},
};
constexpr std::string_view kLabels = "labels";
constexpr std::string_view kWorkerKeys[] = {
    "url",  "kv_events", "kv_events_replay", "kv_events_topic", "api_key_env", "ca_file",
    "role", kLabels};
constexpr std::string_view kRoles[] = {"prefill", "decode", "both"};

// YAML::LoadAll does not terminate if a document makes no progress (", a"), so the starts of
// documents are counted, and at most two.
class DocumentCount final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& /*mark*/) override { ++count_; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnAlias(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnScalar(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                const std::string& /*value*/) override {}
  void OnSequenceStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/,
                       YAML::anchor_t /*anchor*/, YAML::EmitterStyle::value /*style*/) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {}
  void OnMapEnd() override {}

  int count() const { return count_; }

 private:
  int count_ = 0;
};

bool HasMoreThanOneDocument(const std::string& yaml) {
  std::istringstream input(yaml);
  YAML::Parser parser(input);
  DocumentCount documents;
  while (documents.count() < 2 && parser.HandleNextDocument(documents)) {
  }
  return documents.count() > 1;
}

}  // namespace

std::string SpelledWith(char wanted, std::string key) {
  for (char& c : key) {
    if (c == '-' || c == '_') c = wanted;
  }
  return key;
}

Result<> RefuseRepeatedKey(const Origin& origin, const std::string& name, int line,
                           SeenKeys& seen) {
  const auto [first, fresh] = seen.emplace(name, SeenKey{line, SpelledWith('-', origin.name())});
  if (fresh) return {};
  const auto& [first_line, key] = first->second;
  const bool same_name = key == SpelledWith('-', origin.name());
  return std::unexpected(
      origin.Refuse(fmt::format("already set on line {}{}; remove one of them", first_line,
                                same_name ? "" : fmt::format(" as {}", key))));
}

Error BadYaml(std::string_view name, const YAML::Exception& problem) {
  const YAML::Mark& mark = problem.mark;
  if (mark.is_null()) return {Blame::kCaller, fmt::format("{}: bad YAML: {}", name, problem.msg)};
  return {Blame::kCaller,
          fmt::format("{}:{}:{}: bad YAML: {}", name, mark.line + 1, mark.column + 1, problem.msg)};
}

Result<> CheckOneDocument(std::string_view name, const std::string& yaml) {
  if (!HasMoreThanOneDocument(yaml)) return {};
  return Fail(Blame::kCaller, "{}: has more than one document", name);
}

Result<Origin> WorkerListReader::OriginOf(const YAML::Node& key) const {
  if (key.IsScalar()) return Origin::Key(name_, LineOf(key), key.Scalar());
  return Fail(Blame::kCaller, "{}:{}: a key must be a word", name_, LineOf(key));
}

Result<std::vector<WorkerEntry>> WorkerListReader::Read(const YAML::Node& list) const {
  if (list.size() > kMost) {
    return Fail(Blame::kCaller, "{}:{}: has {} workers; at most {} are possible", name_,
                LineOf(list), list.size(), kMost);
  }
  std::vector<WorkerEntry> workers;
  for (const auto& item : list) {
    WorkerEntry entry;
    entry.origin = fmt::format("{}:{}", name_, LineOf(item));
    TRY_VOID(ReadWorker(item, entry));
    workers.push_back(std::move(entry));
  }
  return workers;
}

Result<> WorkerListReader::ReadWorker(const YAML::Node& item, WorkerEntry& entry) const {
  if (item.IsScalar()) {
    entry.url = item.Scalar().substr(0, kMostBytes);
    return {};
  }
  if (!item.IsMap()) {
    return Fail(Blame::kCaller, "{}: a worker must be a URL or a map with a url", entry.origin);
  }
  SeenKeys seen;
  for (const auto& field : item) TRY_VOID(ReadField(field.first, field.second, entry, seen));
  if (!entry.url.empty()) return {};
  return Fail(Blame::kCaller, "{}: a worker needs a url", entry.origin);
}

Result<> WorkerListReader::ReadField(const YAML::Node& key, const YAML::Node& value,
                                     WorkerEntry& entry, SeenKeys& seen) const {
  TRY(const Origin origin, OriginOf(key));
  const std::string name = SpelledWith('_', key.Scalar());
  if (std::ranges::find(kWorkerKeys, name) == std::end(kWorkerKeys)) {
    const auto nearest = Nearest(name, kWorkerKeys);
    return std::unexpected(origin.Refuse(
        nearest
            ? fmt::format("no such key of a worker; did you mean {}?", *nearest)
            : fmt::format("no such key of a worker; there are {}", fmt::join(kWorkerKeys, ", "))));
  }
  TRY_VOID(RefuseRepeatedKey(origin, name, LineOf(key), seen));
  if (name == kLabels) return ReadLabels(origin, value, entry);
  const auto field = std::ranges::find(kWorkerFields, name, &WorkerField::name);
  const bool optional = field != std::end(kWorkerFields);
  const bool may_be_empty = optional && field->may_be_empty;
  if (!value.IsScalar() || (value.Scalar().empty() && !may_be_empty)) {
    return std::unexpected(origin.Refuse(may_be_empty
                                             ? "must be a single value; \"\" is the empty one"
                                             : "must be a single value that is not empty"));
  }
  if (value.Scalar().size() > kMostBytes) return std::unexpected(origin.Refuse("is too long"));
  if (name == "role" && std::ranges::find(kRoles, value.Scalar()) == std::end(kRoles)) {
    return std::unexpected(origin.Refuse("must be prefill, decode or both"));
  }
  (optional ? (entry.*field->member).emplace() : entry.url) = value.Scalar();
  return {};
}

Result<> WorkerListReader::ReadLabels(const Origin& origin, const YAML::Node& value,
                                      WorkerEntry& entry) const {
  if (!value.IsMap()) {
    return std::unexpected(origin.Refuse("must be a map of words, e.g. {tier: gpu}"));
  }
  size_t bytes = 0;
  for (const auto& label : value) {
    if (!label.first.IsScalar() || label.first.Scalar().empty() || !label.second.IsScalar()) {
      return std::unexpected(origin.Refuse("must be a map of words, e.g. {tier: gpu}"));
    }
    bytes += label.first.Scalar().size() + label.second.Scalar().size();
    if (bytes > kMostBytes) return std::unexpected(origin.Refuse("is too long"));
    if (!entry.labels.emplace(label.first.Scalar(), label.second.Scalar()).second) {
      return std::unexpected(
          origin.Refuse(fmt::format("has {} twice", label.first.Scalar().substr(0, 100))));
    }
  }
  return {};
}

}  // namespace fathom
