// Where do the files of this model lie, on this machine?
//
//   what is known of the model            where it is looked for
//   a name of a hub (ORG/NAME)            the caches of Hugging Face's tools; below each root:
//                                         ORG/NAME, models--ORG--NAME (a mounted cache), NAME
//   a path that the engine reports        there, if it lies below a root or in a cache
//
// A worker decides what is looked for, so it must not decide what is read: a folder counts only if
// it lies below a root or in a cache after links and ".." have been resolved, and so does each file
// that is read. Only regular files of bounded size are.
//
// Threads  Any. It reads the disk: not for a loop that serves requests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/model/language_model.h"

namespace fathom {

class ModelSearch {
 public:
  static constexpr size_t kMostTokenizerBytes = size_t{64} << 20;
  static constexpr size_t kMostBytes = size_t{16} << 20;  // of any other file

  // `caches` are in the layout of hub_cache.h. Folders need not exist yet.
  ModelSearch(std::vector<std::string> caches, std::vector<std::string> roots)
      : caches_(std::move(caches)), roots_(std::move(roots)) {}

  struct Place {
    std::string folder;    // without links
    std::string found_by;  // for operators
  };
  // Folders with a tokenizer, the most likely one first. `names` are names and paths, in the order
  // in which they count; anything else among them is ignored.
  std::vector<Place> Find(const std::vector<std::string>& names) const;

  // Errors name the file: kPeer if it needs something that is not supported.
  Result<std::shared_ptr<const LanguageModel>> Load(const std::string& folder) const;

 private:
  void FindName(const std::string& name, std::vector<Place>& places) const;
  void FindPath(const std::string& path, std::vector<Place>& places) const;
  // Whether the path, which has no links, lies below a root or in a cache.
  bool Allows(const std::string& path) const;
  Result<std::string> Read(const std::string& path) const;

  const std::vector<std::string> caches_;
  const std::vector<std::string> roots_;
};

}  // namespace fathom
