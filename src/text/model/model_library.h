// Which files belong to the model that a request names?
//
// Threads  Immutable once loaded.
// Errors   Load(): kCaller, naming the folder and what is wrong with it. Where files need something
//          that is not supported, or there is no usable chat template, that is remarked: engines
//          are asked for what is missing.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/model/language_model.h"

namespace fathom {

class ModelLibrary {
 public:
  // Entries are "MODEL=PATH" or "PATH", which stands for all models that have no entry of their
  // own. Folders with everything, and tokenizers that replace the ones in there.
  static Result<ModelLibrary> Load(std::span<const std::string> models,
                                   std::span<const std::string> tokenizers);

  // One model for all names.
  static ModelLibrary Of(std::shared_ptr<const LanguageModel> model);

  // Null: nothing is known of the model. `base` is the model that it changes, if it is an adapter.
  std::shared_ptr<const LanguageModel> Find(std::string_view model,
                                            std::string_view base = {}) const;
  bool empty() const { return models_.empty(); }

  struct Entry {
    std::string model;  // empty: all others
    std::string path;
    std::string problem;  // empty: there is none
    bool usable = true;   // for texts at least
  };
  // What was loaded, for the log.
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  Result<void> Add(const std::string& model, const ModelPaths& paths);

  std::map<std::string, std::shared_ptr<const LanguageModel>, std::less<>> models_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const LanguageModel>> by_path_;
  std::vector<Entry> entries_;
};

}  // namespace fathom
