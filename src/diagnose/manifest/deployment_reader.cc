#include "diagnose/manifest/deployment_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "diagnose/manifest/collection.h"
#include "diagnose/manifest/compose_file.h"
#include "diagnose/manifest/dynamo_graph.h"
#include "diagnose/manifest/helm_values.h"
#include "diagnose/manifest/kubernetes.h"
#include "diagnose/manifest/markdown.h"
#include "diagnose/manifest/toml_file.h"

namespace fathom {
namespace {

enum class Language : uint8_t { kYaml, kShell, kMarkdown, kToml };

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::string ExtensionOf(std::string_view name) {
  const std::string_view base = name.substr(name.rfind('/') + 1);
  const size_t dot = base.rfind('.');
  return dot == base.npos ? std::string() : Lower(base.substr(dot + 1));
}

// Whether a command that we know stands at the beginning of a line: a text without a better sign of
// what it is, which YAML would take for a sentence.
bool ReadsAsCommands(const Passage& passage) {
  const auto shell = ReadShell(passage);
  if (!shell) return false;
  return std::ranges::any_of(shell->commands, [](const SimpleCommand& command) {
    return LaunchOf(command.words).has_value();
  });
}

Language LanguageOf(const Passage& passage) {
  const std::string extension = ExtensionOf(passage.file().name);
  if (extension == "md" || extension == "mdx" || extension == "markdown")
    return Language::kMarkdown;
  if (extension == "toml") return Language::kToml;
  if (extension == "sh" || extension == "bash" || passage.text().starts_with("#!")) {
    return Language::kShell;
  }
  if (extension == "yaml" || extension == "yml" || extension == "json") return Language::kYaml;
  return ReadsAsCommands(passage) ? Language::kShell : Language::kYaml;
}

class FileReader {
 public:
  explicit FileReader(Collection& out) : out_(out) {}

  Result<> Read(const SourceFile& file) {
    if (file.text.size() > kMaxManifestBytes) {
      return Fail(Blame::kCaller, "{}: {} MiB, above the limit of {} MiB for a manifest", file.name,
                  file.text.size() >> 20, kMaxManifestBytes >> 20);
    }
    const Passage passage(file);
    const std::string& graph = file.graph.empty() ? file.name : file.graph;
    switch (LanguageOf(passage)) {
      case Language::kMarkdown:
        return ReadMarkdown(passage);
      case Language::kToml:
        return CollectToml(passage, graph, out_);
      case Language::kShell:
        return ReadCommands(passage, graph);
      case Language::kYaml:
        return ReadYaml(passage, graph);
    }
    return {};
  }

 private:
  Result<> ReadYaml(const Passage& passage, const std::string& graph) {
    auto tree = YamlTree::Parse(passage);
    if (!tree) return std::unexpected(Explained(std::move(tree).error(), passage));
    const std::vector<const YamlNode*> documents = tree->documents();
    out_.trees.push_back(*std::move(tree));
    for (const YamlNode* document : documents) ReadDocument(*document, graph);
    return {};
  }

  static Error Explained(Error error, const Passage& passage) {
    const std::string_view text = passage.text();
    const size_t braces = text.find("{{");
    if (braces == text.npos || text.find("}}", braces) == text.npos) return error;
    return Error{Blame::kCaller,
                 fmt::format("{}: a Helm template: render it first (helm template ...)",
                             ToText(passage.PlaceOf(braces)))};
  }

  void ReadDocument(const YamlNode& document, const std::string& graph) {
    if (IsKubernetesObject(document)) {
      CollectKubernetes(document, graph, out_);
    } else if (IsDynamoFragment(document)) {
      CollectDynamoFragment(document, graph, out_);
    } else if (IsComposeFile(document)) {
      CollectCompose(document, graph, out_);
    } else if (document.sequence()) {
      for (const YamlNode* item : document.items) {
        if (IsKubernetesObject(*item)) CollectKubernetes(*item, graph, out_);
      }
    } else if (document.map()) {
      const Identity owner = IdentityOfEngineFile(document);
      if (MayBeEngineFile(document)) {
        out_.loose_files.push_back({document.passage->file().name, owner, ReadEngineFile(document),
                                    document.place(), graph});
      }
      if (owner.role == ProgramRole::kOther) CollectHelmValues(document, graph, out_);
    }
  }

  Result<> ReadCommands(const Passage& passage, const std::string& graph) {
    TRY(const ShellText shell, ReadShell(passage));
    Draft base;
    base.program.graph = graph;
    std::vector<Draft> drafts = DraftsOf(shell, passage, base);
    for (Draft& draft : drafts) draft.program.name = ToText(draft.program.place);
    out_.Add(std::move(drafts));
    return {};
  }

  // Documentation has blocks that are cut short or have dots in them: what cannot be read says
  // nothing.
  Result<> ReadMarkdown(const Passage& passage) {
    for (const FencedBlock& block : FencedBlocks(passage)) {
      const std::string graph = ToText(block.text.PlaceOf(0));
      const std::string language = Lower(block.language);
      if (language == "yaml" || language == "yml" || language == "json") {
        (void)ReadYaml(block.text, graph);
      } else if (language == "toml") {
        (void)CollectToml(block.text, graph, out_);
      } else if (language.empty() || language == "bash" || language == "sh" ||
                 language == "shell" || language == "console" || language == "text") {
        (void)ReadCommands(block.text, graph);
      }
    }
    return {};
  }

  Collection& out_;
};

}  // namespace

ReadDeployment ReadDeploymentFiles(std::span<const SourceFile> files) {
  Collection collection;
  ReadDeployment read;
  for (const SourceFile& file : files) {
    auto done = FileReader(collection).Read(file);
    if (!done) read.unread.push_back({file.name, std::move(done).error().what});
  }
  read.deployment = Assemble(std::move(collection));
  return read;
}

}  // namespace fathom
