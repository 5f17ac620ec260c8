// Which operations does an index get, in which order? A list that can be written to a file, so that
// several implementations can be measured on the very same operations.
//
// Format   Little-endian records in issue order: u64 deadline (ignored), u32 rank, u32 kind |
//          has_parent << 8, u64 parent, u64 n, then n words of u64. Kind 0, query: local hashes of
//          a prompt's blocks; 1, stored: pairs (engine hash, local hash), after `parent` if there
//          is one; 2, removed: engine hashes; 3, cleared: nothing.
// Memory   The records as they are in the file, and where each begins: eight bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace fathom {

struct IndexOperation {
  enum class Kind : uint8_t { kQuery, kStored, kRemoved, kCleared };
  Kind kind = Kind::kQuery;
  uint32_t rank = 0;
  std::optional<uint64_t> parent;
  std::span<const uint64_t> words;

  // What it counts for: keys of the query, blocks stored, blocks removed.
  size_t blocks() const { return kind == Kind::kStored ? words.size() / 2 : words.size(); }
};

class OperationList {
 public:
  // Refuses what is not a whole number of well-formed records.
  static Result<OperationList> Parse(std::vector<uint64_t> words);
  static Result<OperationList> Read(const std::string& path);
  Result<void> Write(const std::string& path) const;

  void Add(const IndexOperation& operation);

  size_t size() const { return starts_.size(); }
  IndexOperation operator[](size_t i) const;
  std::span<const uint64_t> words() const { return words_; }

  // Ranks are numbered below this. The rank of a query says nothing and does not count.
  uint32_t ranks() const { return ranks_; }
  uint64_t queries() const { return queries_; }
  uint64_t block_operations() const { return query_keys_ + stored_ + removed_; }
  uint64_t query_keys() const { return query_keys_; }
  uint64_t stored_blocks() const { return stored_; }
  uint64_t removed_blocks() const { return removed_; }

 private:
  static constexpr size_t kHeader = 4;  // words

  void Count(const IndexOperation& operation);

  std::vector<uint64_t> words_;
  std::vector<size_t> starts_;
  uint32_t ranks_ = 0;
  uint64_t queries_ = 0;
  uint64_t query_keys_ = 0;
  uint64_t stored_ = 0;
  uint64_t removed_ = 0;
};

}  // namespace fathom
