// Which files belong to the model that a request names, and who says so?
//
//   named       by the operator (--model-path DIR)
//   downloaded  named by the operator as a model of a hub (--model-path hf:ORG/NAME)
//   found       by the router itself; whether they are used depends on what the engine says of them
//
// Files that are found or downloaded may be added while requests are served. A file that the
// operator has named is never replaced by one that was found.
//
// Threads  ModelLibrary: any; copies share their content. ModelReader: one per thread, it costs one
//          atomic load when nothing has changed.
// Memory   What was added stays until the last copy is gone.
// Errors   Load(): kCaller, naming the folder and what is wrong with it. Where files need something
//          that is not supported, or there is no usable chat template, that is remarked: engines
//          are asked for what is missing.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/model/language_model.h"

namespace fathom {

enum class FilesOrigin : uint8_t { kNamed, kFound, kDownloaded };

std::string_view Name(FilesOrigin origin);

// The files of one model.
struct KnownFiles {
  std::shared_ptr<const LanguageModel> model;  // null: they cannot be used
  FilesOrigin origin = FilesOrigin::kNamed;
  std::string path = {};
  std::string found_by = {};  // for operators: why this folder was looked at
  std::string problem = {};   // why they, or their chat template, cannot be used; empty: they can
};

// The state of a library at one moment.
class ModelShelf {
 public:
  // Null: nothing is known of the model. `base` is the model that it changes, if it is an adapter.
  const KnownFiles* Find(std::string_view model, std::string_view base = {}) const;
  // By model; the empty name stands for all that have no files of their own.
  const std::map<std::string, KnownFiles, std::less<>>& all() const { return models_; }

 private:
  friend class ModelLibrary;
  std::map<std::string, KnownFiles, std::less<>> models_;
};

class ModelLibrary {
 public:
  // What the operator wrote for one model; an empty name stands for all others.
  struct Named {
    std::string model;
    ModelPaths paths;
  };

  ModelLibrary() : state_(std::make_shared<State>()) {}

  // Entries are "MODEL=PATH" or "PATH", which stands for all models that have no entry of their
  // own. Folders with everything, and tokenizers that replace the ones in there.
  static Result<std::vector<Named>> Plan(std::span<const std::string> models,
                                         std::span<const std::string> tokenizers);
  // Plans, and reads all of it.
  static Result<ModelLibrary> Load(std::span<const std::string> models,
                                   std::span<const std::string> tokenizers);

  // One model for all names.
  static ModelLibrary Of(std::shared_ptr<const LanguageModel> model);

  // Reads the files. The same paths are read once.
  Result<void> Add(const Named& named, FilesOrigin origin = FilesOrigin::kNamed,
                   std::string found_by = {});
  // False: the operator has named files of this model, or of all models.
  bool Put(const std::string& model, KnownFiles files);

  std::shared_ptr<const ModelShelf> Current() const;
  // Takes a lock; the request path has a ModelReader.
  std::shared_ptr<const LanguageModel> Find(std::string_view model,
                                            std::string_view base = {}) const;
  uint64_t version() const { return state_->version.load(std::memory_order_acquire); }
  bool empty() const { return Current()->all().empty(); }

  // Set before requests are served: files may be added later.
  void ExpectMore() { state_->expects_more = true; }
  bool expects_more() const { return state_->expects_more; }

 private:
  struct State {
    mutable std::mutex mutex;
    std::shared_ptr<const ModelShelf> shelf = std::make_shared<ModelShelf>();  // guarded by mutex
    // Guarded by mutex: all that was ever loaded, by its paths.
    std::map<std::pair<std::string, std::string>, std::shared_ptr<const LanguageModel>> by_path;
    std::atomic<uint64_t> version{0};  // raised (release) after a change; pairs with version()
    bool expects_more = false;
  };

  // With the mutex held.
  void Publish(const std::string& model, KnownFiles files);

  std::shared_ptr<State> state_;
};

class ModelReader {
 public:
  explicit ModelReader(ModelLibrary library) : library_(std::move(library)) {}

  // The newest state. Valid until the next call.
  const ModelShelf& Get() {
    if (const uint64_t version = library_.version(); version != version_ || !shelf_) {
      version_ = version;
      shelf_ = library_.Current();
    }
    return *shelf_;
  }

 private:
  const ModelLibrary library_;
  uint64_t version_ = 0;
  std::shared_ptr<const ModelShelf> shelf_;
};

}  // namespace fathom
