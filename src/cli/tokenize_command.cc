// fathom tokenize: the router's tokens of a prompt, for comparison with an engine's.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/prompt_report.h"
#include "codec/json.h"
#include "router/gateway/request_fields.h"
#include "router/library/hub_download.h"

namespace fathom {
namespace {

void TokenizeNote(std::string_view what) { fmt::print(stderr, "fathom tokenize: {}\n", what); }

// Flushes at once; false if the reader has closed the pipe.
bool PrintWhole(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
         std::fflush(stdout) == 0;
}

std::optional<std::string> VariableNamed(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// The named file, or standard input.
Result<std::string> InputPath(const std::vector<std::string>& inputs) {
  if (inputs.size() > 1) {
    return Fail(Blame::kCaller, "only one input is allowed: '{}' is a second one", inputs[1]);
  }
  return inputs.empty() || inputs[0] == "-" ? "/dev/stdin" : inputs[0];
}

// The APIs by the names that --as has for them.
std::optional<PromptApis> ApiNamed(std::string_view form) {
  if (form == "chat") return kInChats;
  if (form == "completion") return kInCompletions;
  if (form == "messages") return kInMessages;
  if (form == "responses") return kInResponses;
  return std::nullopt;
}

// Nothing if it is no request.
std::optional<PromptApis> ApiOf(std::string_view text) {
  if (!Trim(text).starts_with('{')) return std::nullopt;
  const auto fields = ReadRequestFields(text);
  return fields ? LikelyApi(fields->parts) : std::nullopt;
}

class Tokenizing {
 public:
  Tokenizing(const LanguageModel& model, const Settings& settings)
      : model_(model), settings_(settings), reporter_(model, settings) {}

  int Run(const std::string& path) {
    return settings_.Flag("lines") ? EachLine(path) : Whole(path);
  }

 private:
  int Whole(const std::string& path) {
    const auto input = ReadFile(path);
    if (!input) return Unreadable(path, input.error().what);
    const std::string& form = settings_.Choice("as");
    const auto apis = form == "auto" ? ApiOf(*input) : ApiNamed(form);
    const auto report = apis ? reporter_.OfRequest(*input, *apis) : reporter_.OfText(*input);
    if (!report) {
      TokenizeNote(report.error().what);
      return kExitFailed;
    }
    Show(*report);
    return kExitFine;
  }

  // Line by line as they arrive: the writer may wait for each answer.
  int EachLine(const std::string& path) {
    std::ifstream input(path);
    if (!input) return Unreadable(path, std::strerror(errno));
    int status = kExitFine;
    std::string line;
    for (size_t number = 1; std::getline(input, line); ++number) {
      const std::string_view value = Trim(line);
      if (value.empty()) continue;
      const auto report = OfLine(value);
      if (report) {
        if (!Show(*report)) break;
      } else {
        status = kExitFailed;
        Refuse(number, report.error().what);
      }
    }
    return status;
  }

  static int Unreadable(const std::string& path, std::string_view why) {
    TokenizeNote(fmt::format("{}: {}", path, why));
    return kExitUsage;
  }

  Result<PromptReport> OfLine(std::string_view line) const {
    if (!line.starts_with('"')) {
      const auto named = ApiNamed(settings_.Choice("as"));
      return reporter_.OfRequest(line, named ? *named : ApiOf(line).value_or(kInChats));
    }
    TRY(const Json json, Json::Parse(line));
    return reporter_.OfText(*json.string());
  }

  bool Show(const PromptReport& report) const {
    return PrintWhole(settings_.Flag("json") ? AsJson(report) : AsText(report, model_.tokenizer()));
  }

  void Refuse(size_t number, const std::string& what) const {
    if (!settings_.Flag("json")) return TokenizeNote(fmt::format("line {}: {}", number, what));
    JsonWriter w;
    w.BeginObject().Key("error").String(what).EndObject();
    PrintWhole(w.Take() + "\n");
  }

  const LanguageModel& model_;
  const Settings& settings_;
  const PromptReporter reporter_;
};

}  // namespace

int RunTokenize(const Settings& settings) {
  ModelPaths paths{settings.Text("model-path"), settings.Text("tokenizer-path")};
  if (paths.model.empty() && paths.tokenizer.empty()) {
    TokenizeNote(
        "no tokenizer given: --model-path DIR names the folder of a model, with tokenizer.json, "
        "tokenizer_config.json and the chat template");
    return kExitUsage;
  }
  if (HubRef::Is(paths.model)) {
    auto folder = FolderFromHub(paths.model, HubEnvironment::Of(VariableNamed));
    if (!folder) {
      TokenizeNote(folder.error().what);
      return kExitUsage;
    }
    paths.model = *std::move(folder);
  }
  const auto model = LanguageModel::Load(paths);
  if (!model) {
    TokenizeNote(model.error().what);
    return kExitUsage;
  }
  const auto path = InputPath(settings.List("input"));
  if (!path) {
    TokenizeNote(path.error().what);
    return kExitUsage;
  }
  return Tokenizing(**model, settings).Run(*path);
}

}  // namespace fathom
