#include "text/model/model_files.h"

#include <filesystem>

#include "base/file.h"
#include "codec/json.h"

namespace fathom {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTokenizer = "tokenizer.json";

// What an operator needs to know who has given the wrong folder.
constexpr std::string_view kWanted =
    "it needs tokenizer.json, tokenizer_config.json and, unless the latter contains the "
    "template, chat_template.jinja; these are in the folder that the engine is started with, or "
    "in ~/.cache/huggingface/hub/models--ORG--NAME/snapshots/REVISION";

// A file that may be missing.
Result<std::string> ReadIfThere(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::string();
  auto text = ReadFile(path);
  if (!text) return std::unexpected(std::move(text).error().In(path));
  return text;
}

Result<fs::path> TokenizerIn(const std::string& folder) {
  std::error_code ignored;
  const fs::path path = fs::path(folder) / kTokenizer;
  if (fs::exists(path, ignored)) return path;
  if (!fs::is_directory(folder, ignored)) {
    return Fail(Blame::kCaller, "{}: no such folder; {}", folder, kWanted);
  }
  // The older format of the same vocabulary, which is not read.
  if (fs::exists(fs::path(folder) / "tokenizer.model", ignored)) {
    return Fail(Blame::kCaller,
                "{}: has tokenizer.model, but no tokenizer.json, which the router needs; "
                "AutoTokenizer.from_pretrained(...).save_pretrained(...) of transformers writes "
                "it",
                folder);
  }
  return Fail(Blame::kCaller, "{}: no tokenizer.json in it; {}", folder, kWanted);
}

Result<fs::path> TokenizerPath(const ModelPaths& paths) {
  if (paths.tokenizer.empty()) return TokenizerIn(paths.model);
  std::error_code ignored;
  if (fs::is_regular_file(paths.tokenizer, ignored)) return fs::path(paths.tokenizer);
  return TokenizerIn(paths.tokenizer);
}

}  // namespace

Result<ModelFiles> ReadModelFiles(const ModelPaths& paths) {
  return ReadModelFiles(paths, ReadIfThere);
}

Result<ModelFiles> ReadModelFiles(const ModelPaths& paths, const ModelFileReader& read) {
  ModelFiles files;
  TRY(const fs::path tokenizer, TokenizerPath(paths));
  files.tokenizer_path = tokenizer.string();
  TRY(files.tokenizer, read(files.tokenizer_path));
  // What stands beside the tokenizer belongs to it; the model's folder has the rest.
  const fs::path folders[] = {tokenizer.parent_path(), fs::path(paths.model)};
  const auto first = [&](std::string_view name) -> Result<std::string> {
    for (const fs::path& folder : folders) {
      if (folder.empty() && !paths.model.empty()) continue;
      TRY(auto text, read((folder / name).string()));
      if (!text.empty()) return text;
    }
    return std::string();
  };
  TRY(files.tokenizer_config, first("tokenizer_config.json"));
  TRY(files.generation_config, first("generation_config.json"));
  TRY(files.config, first("config.json"));
  TRY(files.chat_template, first("chat_template.jinja"));
  if (!files.chat_template.empty()) return files;
  TRY(const std::string wrapped, first("chat_template.json"));
  const auto json = Json::Parse(wrapped);
  const Json* const text = json ? json->Find("chat_template") : nullptr;
  if (text != nullptr && text->string() != nullptr) files.chat_template = *text->string();
  return files;
}

}  // namespace fathom
