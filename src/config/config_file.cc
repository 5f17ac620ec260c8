#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <map>
#include <sstream>

#include "base/text.h"
#include "config/assignment.h"

namespace fathom {
namespace {

constexpr std::string_view kWorkers = "workers";

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
};
constexpr std::string_view kWorkerKeys[] = {
    "url", "kv_events", "kv_events_replay", "kv_events_topic", "api_key_env", "ca_file"};

std::string With(char wanted, std::string key) {
  for (char& c : key) {
    if (c == '-' || c == '_') c = wanted;
  }
  return key;
}

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

// yaml-cpp throws; ParseConfigFile catches.
class ConfigFileReader {
 public:
  ConfigFileReader(Command command, std::string_view name) : command_(command), name_(name) {}

  Result<ConfigFile> Read(const std::string& yaml) {
    const YAML::Node document = YAML::Load(yaml);
    if (document && !document.IsNull() && !document.IsMap()) {
      return Fail(Blame::kCaller, "{}:{}: must be a map of options, e.g. port: 8000", name_,
                  LineOf(document));
    }
    if (HasMoreThanOneDocument(yaml)) {
      return Fail(Blame::kCaller, "{}: has more than one document", name_);
    }
    if (!document || document.IsNull()) return std::move(file_);
    std::map<std::string, int> seen;
    for (const auto& entry : document) TRY_VOID(ReadEntry(entry.first, entry.second, seen));
    return std::move(file_);
  }

 private:
  static int LineOf(const YAML::Node& node) { return node.Mark().line + 1; }

  Result<> ReadEntry(const YAML::Node& key, const YAML::Node& value,
                     std::map<std::string, int>& seen) {
    TRY(const Origin origin, OriginOf(key));
    const std::string name = With('-', key.Scalar());
    const bool workers = name == kWorkers && command_ == Command::kServe;
    const Option* option = FindOption(command_, name);
    if (!workers && option == nullptr) return std::unexpected(NoSuchKey(origin, name));
    TRY_VOID(RefuseRepeat(origin, workers ? name : std::string(option->name), LineOf(key), seen));
    if (value.IsNull())
      return std::unexpected(origin.Refuse("has no value; give one or remove it"));
    return workers ? ReadWorkers(origin, value) : ReadOption(origin, *option, value);
  }

  Result<Origin> OriginOf(const YAML::Node& key) const {
    if (key.IsScalar()) return Origin::Key(name_, LineOf(key), key.Scalar());
    return Fail(Blame::kCaller, "{}:{}: a key must be a word", name_, LineOf(key));
  }

  static Result<> RefuseRepeat(const Origin& origin, const std::string& name, int line,
                               std::map<std::string, int>& seen) {
    const auto [first, fresh] = seen.emplace(name, line);
    if (fresh) return {};
    return std::unexpected(
        origin.Refuse(fmt::format("already set on line {}; remove one of them", first->second)));
  }

  Error NoSuchKey(const Origin& origin, const std::string& name) const {
    if (Nearest(name, {&kWorkers, 1})) {
      return origin.Refuse("no such key; did you mean workers?");
    }
    if (const auto other = CommandWith(name)) {
      return origin.Refuse(
          fmt::format("not an option of {}; it belongs to {}", NameOf(command_), NameOf(*other)));
    }
    const auto nearest = NearestOption(command_, name);
    if (nearest) return origin.Refuse(fmt::format("no such key; did you mean {}?", *nearest));
    return origin.Refuse(fmt::format("no such key; fathom {} --help lists them", NameOf(command_)));
  }

  Result<> ReadOption(const Origin& origin, const Option& option, const YAML::Node& value) {
    if (option.name == "config") {
      return std::unexpected(origin.Refuse("a file cannot name another; use --config"));
    }
    TRY(std::string text, TextOf(origin, option, value));
    file_.assignments.push_back({&option, std::move(text), origin});
    return {};
  }

  static Result<std::string> TextOf(const Origin& origin, const Option& option,
                                    const YAML::Node& value) {
    if (value.IsScalar()) return value.Scalar();
    if (!option.list()) return std::unexpected(origin.Refuse("must be a single value"));
    if (!value.IsSequence()) return std::unexpected(origin.Refuse("must be a list of words"));
    std::string text;
    for (const auto& item : value) {
      if (!item.IsScalar()) return std::unexpected(origin.Refuse("must be a list of words"));
      text.append(item.Scalar()).append(" ");
    }
    return text;
  }

  Result<> ReadWorkers(const Origin& origin, const YAML::Node& value) {
    if (!value.IsSequence()) {
      return std::unexpected(origin.Refuse("must be a list of URLs or maps, each after a dash"));
    }
    for (const auto& item : value) {
      WorkerEntry entry;
      entry.origin = fmt::format("{}:{}", name_, LineOf(item));
      TRY_VOID(ReadWorker(item, entry));
      file_.workers.push_back(std::move(entry));
    }
    return {};
  }

  Result<> ReadWorker(const YAML::Node& item, WorkerEntry& entry) const {
    if (item.IsScalar()) {
      entry.url = item.Scalar();
      return {};
    }
    if (!item.IsMap()) {
      return Fail(Blame::kCaller, "{}: a worker must be a URL or a map with a url", entry.origin);
    }
    std::map<std::string, int> seen;
    for (const auto& field : item) {
      TRY_VOID(ReadWorkerField(field.first, field.second, entry, seen));
    }
    if (!entry.url.empty()) return {};
    return Fail(Blame::kCaller, "{}: a worker needs a url", entry.origin);
  }

  Result<> ReadWorkerField(const YAML::Node& key, const YAML::Node& value, WorkerEntry& entry,
                           std::map<std::string, int>& seen) const {
    TRY(const Origin origin, OriginOf(key));
    const std::string name = With('_', key.Scalar());
    if (std::ranges::find(kWorkerKeys, name) == std::end(kWorkerKeys)) {
      const auto nearest = Nearest(name, kWorkerKeys);
      return std::unexpected(
          origin.Refuse(nearest ? fmt::format("no such key of a worker; did you mean {}?", *nearest)
                                : fmt::format("no such key of a worker; there are {}",
                                              fmt::join(kWorkerKeys, ", "))));
    }
    TRY_VOID(RefuseRepeat(origin, name, LineOf(key), seen));
    const auto field = std::ranges::find(kWorkerFields, name, &WorkerField::name);
    const bool optional = field != std::end(kWorkerFields);
    const bool may_be_empty = optional && field->may_be_empty;
    if (!value.IsScalar() || (value.Scalar().empty() && !may_be_empty)) {
      return std::unexpected(origin.Refuse(may_be_empty
                                               ? "must be a single value; \"\" is the empty one"
                                               : "must be a single value that is not empty"));
    }
    (optional ? (entry.*field->member).emplace() : entry.url) = value.Scalar();
    return {};
  }

  const Command command_;
  const std::string_view name_;
  ConfigFile file_;
};

}  // namespace

Result<ConfigFile> ParseConfigFile(Command command, std::string_view name,
                                   const std::string& yaml) {
  try {
    return ConfigFileReader(command, name).Read(yaml);
  } catch (const YAML::Exception& e) {
    if (e.mark.is_null()) return Fail(Blame::kCaller, "{}: bad YAML: {}", name, e.msg);
    return Fail(Blame::kCaller, "{}:{}:{}: bad YAML: {}", name, e.mark.line + 1, e.mark.column + 1,
                e.msg);
  }
}

}  // namespace fathom
