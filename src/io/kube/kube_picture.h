// Which objects has a follower told of, and with which content?
//
// A list is a generation: what a complete one does not have is gone. A list that is given up leaves
// everything as it was.
//
// Memory  Per object its name and a hash, at most kMaxObjects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fathom {

class KubePicture {
 public:
  static constexpr size_t kMaxObjects = 50'000;

  enum class Change : uint8_t { kNone, kTold, kNoRoom };

  void BeginList() { ++generation_; }
  // kTold: it is new, or has another content than before.
  Change Put(const std::string& name, uint64_t content) {
    const auto known = objects_.find(name);
    if (known == objects_.end()) {
      if (objects_.size() >= kMaxObjects) return Change::kNoRoom;
      objects_.emplace(name, Entry{content, generation_});
      return Change::kTold;
    }
    known->second.generation = generation_;
    if (known->second.content == content) return Change::kNone;
    known->second.content = content;
    return Change::kTold;
  }
  // False: it was not there.
  bool Remove(const std::string& name) { return objects_.erase(name) > 0; }
  // Takes out what has not been put since BeginList().
  std::vector<std::string> EndList() {
    std::vector<std::string> gone;
    for (const auto& [name, entry] : objects_) {
      if (entry.generation != generation_) gone.push_back(name);
    }
    for (const std::string& name : gone) objects_.erase(name);
    return gone;
  }

  size_t size() const { return objects_.size(); }

 private:
  struct Entry {
    uint64_t content = 0;
    uint64_t generation = 0;
  };

  std::unordered_map<std::string, Entry> objects_;
  uint64_t generation_ = 0;
};

}  // namespace fathom
