#include "diagnose/manifest/container.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "diagnose/manifest/arguments.h"
#include "diagnose/manifest/foothold.h"

namespace fathom {
namespace {

constexpr size_t kMaxShellDepth = 3;

std::vector<ShellWord> WordsOf(const YamlNode* node) {
  std::vector<ShellWord> words;
  if (node == nullptr) return words;
  if (node->scalar()) words.push_back(WordOf(*node));
  for (const YamlNode* item : node->items) {
    if (item->scalar()) words.push_back(WordOf(*item));
  }
  return words;
}

// The script of sh -c SCRIPT, bash -lc SCRIPT; nullptr where these words are something else.
const ShellWord* ScriptOf(std::span<const ShellWord> words) {
  constexpr std::string_view kShells[] = {"sh", "bash", "dash", "ash", "zsh"};
  if (words.size() < 2) return nullptr;
  const std::string_view path = words[0].text;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (std::ranges::find(kShells, name) == std::end(kShells)) return nullptr;
  for (size_t at = 1; at + 1 < words.size(); ++at) {
    const std::string& option = words[at].text;
    if (!option.starts_with('-')) return nullptr;
    if (!option.starts_with("--") && option.contains('c')) return &words[at + 1];
  }
  return nullptr;
}

Foothold BehindText(const Passage& passage, size_t end) {
  Foothold foothold;
  foothold.form = Foothold::Form::kText;
  foothold.file = passage.file().name;
  foothold.offset = end;
  const size_t start = passage.OffsetOf(0);
  const std::string_view text = passage.file().text;
  const char before = start == 0 ? '\n' : text[start - 1];
  foothold.nested = !passage.verbatim() || before == '"' || before == '\'';
  return foothold;
}

// Dynamo's own parts are in the same image as the engine that they are made for.
void Identify(Program& program, const Identity& identity) {
  const Identity image = IdentityOfImage(program.image);
  program.role = identity.role;
  program.dynamo = identity.dynamo;
  program.engine = identity.engine;
  if (program.engine == EngineKind::kUnknown && identity.role != ProgramRole::kFathom) {
    program.engine = image.engine;
  }
}

void AddAssignments(std::vector<Written>& variables, std::span<const ShellWord> assignments) {
  for (const ShellWord& word : assignments) {
    const size_t equals = word.text.find('=');
    if (equals == word.text.npos || variables.size() >= kMaxVariables) continue;
    variables.push_back(word.From(word.text.substr(0, equals), equals + 1));
  }
}

// Reads a script from its first command to its last, with the variables that it sets on its way.
class ScriptReader {
 public:
  ScriptReader(const Draft& base, std::vector<Draft>& drafts) : base_(base), drafts_(drafts) {
    seen_ = base.program.variables;
  }

  void Read(const ShellText& shell, const Passage& passage, size_t depth) {
    for (const HereDocument& document : shell.documents) {
      if (documents_.size() < kMaxDocuments) documents_.push_back(document);
    }
    for (const SimpleCommand& command : shell.commands) ReadCommand(command, passage, depth);
  }

 private:
  void ReadCommand(const SimpleCommand& command, const Passage& passage, size_t depth) {
    if (command.words.empty()) {
      AddAssignments(seen_, command.assignments);
      return;
    }
    if (command.words[0].text == "export") {
      AddAssignments(seen_, std::span(command.words).subspan(1));
      AddAssignments(exported_, std::span(command.words).subspan(1));
      return;
    }
    const ShellWord* script = ScriptOf(command.words);
    if (script != nullptr && script->passage && depth < kMaxShellDepth) {
      const auto inner = ReadShell(*script->passage);
      if (inner) Read(*inner, *script->passage, depth + 1);
      return;
    }
    if (const auto launch = LaunchOf(command.words)) Add(command, *launch, passage);
  }

  void Add(const SimpleCommand& command, const Launch& launch, const Passage& passage) {
    if (drafts_.size() >= kMaxPrograms) return;
    Draft draft = base_;
    Program& program = draft.program;
    if (!launch.image.empty()) program.image = launch.image;
    program.version = VersionOf(program.image);
    Identify(program, launch.identity);
    program.place = command.words.front().place;
    program.flags = FlagsOf(std::span(command.words).subspan(launch.arguments));
    program.variables.insert(program.variables.end(), exported_.begin(), exported_.end());
    AddAssignments(program.variables, command.assignments);
    AddAssignments(program.variables, launch.variables);
    ExpandAll(program.flags, seen_);
    program.flag_foothold = BehindText(passage, command.end);
    draft.documents = documents_;
    drafts_.push_back(std::move(draft));
  }

  const Draft& base_;
  std::vector<Draft>& drafts_;
  std::vector<Written> seen_;
  std::vector<Written> exported_;
  std::vector<HereDocument> documents_;
};

void FindFlagFoothold(const ContainerParts& parts, Program& program) {
  const YamlNode* list = parts.arguments != nullptr ? parts.arguments : parts.command;
  if (list == nullptr && parts.arguments_key.empty()) return;
  program.flag_foothold = list == nullptr ? FootholdForMissing(*parts.home, parts.arguments_key,
                                                               Foothold::Form::kYamlItems)
                                          : FootholdIn(*list, Foothold::Form::kYamlItems);
}

Foothold::Form EnvironmentForm(const YamlNode& environment) {
  if (environment.map()) return Foothold::Form::kYamlEnvMap;
  const bool pairs = !environment.items.empty() && environment.items.front()->scalar();
  return pairs ? Foothold::Form::kYamlEnvPairs : Foothold::Form::kYamlEnvList;
}

void ReadEnvironment(const ContainerParts& parts, Program& program) {
  const YamlNode* last = nullptr;
  for (const YamlNode* environment : parts.environments) {
    if (environment == nullptr) continue;
    for (Written& variable : VariablesOf(*environment)) {
      program.variables.push_back(std::move(variable));
    }
    last = environment;
  }
  const YamlNode* home = parts.environment_home != nullptr ? parts.environment_home : parts.home;
  program.environment_foothold =
      last != nullptr ? FootholdIn(*last, EnvironmentForm(*last))
                      : FootholdForMissing(*home, parts.environment_key, parts.missing_environment);
}

// What it is where no command says so.
Identity IdentityWithoutCommand(const ContainerParts& parts, std::span<const Written> flags) {
  if (parts.otherwise.role != ProgramRole::kOther) return parts.otherwise;
  const Identity image = IdentityOfImage(parts.image);
  if (parts.command == nullptr && image.role != ProgramRole::kOther) return image;
  // A script of somebody's own around an engine, or an image with a name of its own.
  for (const Written& flag : flags) {
    const EngineKind engine = EngineWithFlag(flag.name);
    if (engine == EngineKind::kUnknown) continue;
    return {ProgramRole::kEngine, image.engine == EngineKind::kUnknown ? engine : image.engine,
            image.dynamo};
  }
  return {};
}

void DraftListed(const ContainerParts& parts, std::span<const ShellWord> words, Draft draft,
                 std::vector<Draft>& drafts) {
  Program& program = draft.program;
  const auto launch = LaunchOf(words);
  // Without a command of its own the image's comes first, and these are its arguments.
  size_t first = launch ? launch->arguments : 0;
  if (!launch && !words.empty() && words[0].text == "serve") first = 1;
  program.flags = FlagsOf(words.subspan(first));
  if (!launch && parts.command != nullptr) {
    std::erase_if(program.flags, [](const Written& flag) { return flag.name == "--model"; });
  }
  Identify(program, launch ? launch->identity : IdentityWithoutCommand(parts, program.flags));
  if (program.role == ProgramRole::kOther) return;
  ExpandAll(program.flags, program.variables);
  FindFlagFoothold(parts, program);
  drafts.push_back(std::move(draft));
}

// The words of a string that is no command of its own: compose cuts it as a shell would.
struct CutText {
  std::vector<ShellWord> words;
  Foothold foothold;  // behind its last word
};

std::optional<CutText> Cut(const YamlNode* node) {
  if (node == nullptr || !node->scalar()) return std::nullopt;
  const auto passage = PassageOf(*node);
  const auto shell = passage ? ReadShell(*passage) : Result<ShellText>();
  if (!passage || !shell || shell->commands.size() != 1) return std::nullopt;
  const SimpleCommand& command = shell->commands.front();
  return CutText{command.words, BehindText(*passage, command.end)};
}

// An entrypoint and a command, either of them as a string. False: neither is one, or the string is
// a script.
bool DraftTogether(const ContainerParts& parts, const Draft& draft, std::vector<Draft>& drafts) {
  if (parts.command == nullptr || parts.arguments == nullptr) return false;
  const auto command = Cut(parts.command);
  std::vector<ShellWord> words = command ? command->words : WordsOf(parts.command);
  const auto arguments = Cut(parts.arguments);
  if (!command && !arguments) return false;
  if (arguments && words.size() > 1) {
    std::vector<ShellWord> whole = words;
    whole.push_back(WordOf(*parts.arguments));
    if (ScriptOf(whole) != nullptr) return false;
  }
  for (ShellWord& word : arguments ? std::vector(arguments->words) : WordsOf(parts.arguments)) {
    words.push_back(std::move(word));
  }
  if (ScriptOf(words) != nullptr) return false;
  DraftListed(parts, words, draft, drafts);
  if (!arguments) return true;
  for (Draft& each : drafts) each.program.flag_foothold = arguments->foothold;
  return true;
}

// sh -c SCRIPT, or a whole command line as one string.
std::optional<Passage> ScriptOf(const ContainerParts& parts, std::span<const ShellWord> words) {
  if (const ShellWord* script = ScriptOf(words)) return script->passage;
  if (words.size() != 1) return std::nullopt;
  const bool text = parts.arguments != nullptr && parts.arguments->scalar();
  const bool line = words[0].text.contains(' ') && !words[0].text.starts_with('-');
  return text || line ? words[0].passage : std::nullopt;
}

void DraftScript(const ContainerParts& parts, const Passage& script, const Draft& draft,
                 std::vector<Draft>& drafts) {
  const auto shell = ReadShell(script);
  if (!shell) return;
  drafts = DraftsOf(*shell, script, draft);
  for (Draft& each : drafts) each.program.place = draft.program.place;
  if (!drafts.empty() || shell->commands.size() != 1) return;
  // A string of arguments for the image's own command; or a component whose kind is known anyway.
  const SimpleCommand& command = shell->commands.front();
  const bool arguments = parts.arguments != nullptr && parts.arguments->scalar();
  DraftListed(parts, arguments ? std::span(command.words) : std::span<const ShellWord>(), draft,
              drafts);
  for (Draft& each : drafts) each.program.flag_foothold = BehindText(script, command.end);
}

Written VariableOf(const YamlNode& item) {
  Written variable;
  if (item.scalar()) {
    const size_t equals = item.text.find('=');
    if (equals == item.text.npos) return {item.text, {}, item.place(), std::nullopt};
    return WordOf(item).From(item.text.substr(0, equals), equals + 1);
  }
  variable.name = item.TextOf("name");
  variable.place = item.place();
  if (const YamlNode* value = item.Find("value"); value != nullptr && value->scalar()) {
    variable.value = value->text;
    variable.place = value->place();
    variable.span = value->span();
  }
  return variable;
}

}  // namespace

std::vector<Written> VariablesOf(const YamlNode& environment) {
  std::vector<Written> variables;
  for (const YamlNode* item : environment.items | std::views::take(kMaxVariables)) {
    Written variable = VariableOf(*item);
    if (!variable.name.empty()) variables.push_back(std::move(variable));
  }
  for (const YamlNode::Entry& entry : environment.entries | std::views::take(kMaxVariables)) {
    if (!entry.key->scalar()) continue;
    if (entry.value->scalar()) {
      variables.push_back(
          {entry.key->text, entry.value->text, entry.value->place(), entry.value->span()});
    } else {
      variables.push_back({entry.key->text, {}, entry.key->place(), std::nullopt});
    }
  }
  ExpandAll(variables, variables);
  return variables;
}

std::vector<Draft> DraftsOf(const ContainerParts& parts, const Draft& base) {
  Draft draft = base;
  draft.program.image = parts.image;
  draft.program.version = VersionOf(parts.image);
  ReadEnvironment(parts, draft.program);
  std::vector<ShellWord> words = WordsOf(parts.command);
  for (ShellWord& word : WordsOf(parts.arguments)) words.push_back(std::move(word));

  std::vector<Draft> drafts;
  if (DraftTogether(parts, draft, drafts)) return drafts;
  if (const auto script = ScriptOf(parts, words)) {
    DraftScript(parts, *script, draft, drafts);
  } else {
    DraftListed(parts, words, std::move(draft), drafts);
  }
  return drafts;
}

std::vector<Draft> DraftsOf(const ShellText& shell, const Passage& passage, const Draft& base) {
  std::vector<Draft> drafts;
  ScriptReader(base, drafts).Read(shell, passage, 0);
  return drafts;
}

}  // namespace fathom
