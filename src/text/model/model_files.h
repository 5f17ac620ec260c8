// The files that say how a model turns a chat into tokens, as they lie in a model's folder (the one
// that engines are started with, or a snapshot of a download):
//
//   tokenizer.json           the tokenizer
//   tokenizer_config.json    special tokens, often the chat template
//   chat_template.jinja      the chat template, where it is a file of its own
//   chat_template.json       the same, for models that see images
//   generation_config.json   the BOS token, where tokenizer_config.json does not speak of it
//   config.json              the kind of model
//
// Errors  kCaller: which file is missing or cannot be read, and where it usually is.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace fathom {

struct ModelPaths {
  std::string model;      // a folder; may be empty if the tokenizer is there
  std::string tokenizer;  // a folder or a tokenizer.json, in place of the one in the model's folder
};

// Texts are empty where there is no such file.
struct ModelFiles {
  std::string tokenizer_path;
  std::string tokenizer;
  std::string tokenizer_config;
  std::string generation_config;
  std::string chat_template;
  std::string config;
};

// The content of a file, empty if there is none. The error names the file.
using ModelFileReader = std::function<Result<std::string>(const std::string& path)>;

Result<ModelFiles> ReadModelFiles(const ModelPaths& paths);
// With a reader that refuses some files.
Result<ModelFiles> ReadModelFiles(const ModelPaths& paths, const ModelFileReader& read);

}  // namespace fathom
