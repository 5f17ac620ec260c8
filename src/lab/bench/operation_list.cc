#include "lab/bench/operation_list.h"

#include <algorithm>
#include <bit>
#include <fstream>

#include "router/index/prefix_index.h"

namespace fathom {
namespace {

using Kind = IndexOperation::Kind;

// The file is read into memory as it is.
static_assert(std::endian::native == std::endian::little);

constexpr uint64_t kHasParent = 1 << 8;

// Nothing when the record makes sense by itself.
std::optional<std::string> ProblemWith(uint64_t what, uint64_t rank, uint64_t n) {
  const uint64_t kind = what & ~kHasParent;
  if (kind > static_cast<uint64_t>(Kind::kCleared)) return fmt::format("kind {:#x}", what);
  if (kind != static_cast<uint64_t>(Kind::kQuery) && rank >= PrefixIndex::kMostRanks) {
    return fmt::format("rank {}", rank);
  }
  if (kind == static_cast<uint64_t>(Kind::kStored) && n % 2 != 0) return "half a pair";
  if (kind == static_cast<uint64_t>(Kind::kCleared) && n != 0) return "words in a clear";
  return std::nullopt;
}

}  // namespace

Result<OperationList> OperationList::Parse(std::vector<uint64_t> words) {
  OperationList list;
  list.words_ = std::move(words);
  const std::vector<uint64_t>& all = list.words_;
  for (size_t at = 0; at < all.size();) {
    const size_t number = list.starts_.size();
    if (all.size() - at < kHeader) {
      return Fail(Blame::kCaller, "record {} ends in its header", number);
    }
    const uint64_t n = all[at + 3];
    if (n > all.size() - at - kHeader) {
      return Fail(Blame::kCaller, "record {} has {} words, more than are left", number, n);
    }
    if (const auto problem = ProblemWith(all[at + 1] >> 32, all[at + 1] & 0xffffffffu, n)) {
      return Fail(Blame::kCaller, "record {}: {}", number, *problem);
    }
    list.starts_.push_back(at);
    list.Count(list[number]);
    at += kHeader + n;
  }
  return list;
}

Result<OperationList> OperationList::Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return Fail(Blame::kCaller, "cannot read {}", path);
  const auto bytes = static_cast<int64_t>(file.tellg());
  if (bytes < 0 || bytes % 8 != 0) {
    return Fail(Blame::kCaller, "{}: not a whole number of words", path);
  }
  std::vector<uint64_t> words(static_cast<size_t>(bytes) / 8);
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(words.data()), bytes)) {
    return Fail(Blame::kCaller, "{}: cannot be read to its end", path);
  }
  auto list = Parse(std::move(words));
  if (!list) return std::unexpected(std::move(list).error().In(path));
  return list;
}

Result<void> OperationList::Write(const std::string& path) const {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(words_.data()),
             static_cast<std::streamsize>(words_.size() * sizeof(uint64_t)));
  file.close();
  if (!file) return Fail(Blame::kCaller, "cannot write {}", path);
  return {};
}

void OperationList::Add(const IndexOperation& operation) {
  starts_.push_back(words_.size());
  const uint64_t what = static_cast<uint64_t>(operation.kind) | (operation.parent ? kHasParent : 0);
  const uint64_t header[kHeader] = {0, operation.rank | (what << 32), operation.parent.value_or(0),
                                    operation.words.size()};
  words_.insert(words_.end(), std::begin(header), std::end(header));
  words_.insert(words_.end(), operation.words.begin(), operation.words.end());
  Count(operation);
}

IndexOperation OperationList::operator[](size_t i) const {
  const uint64_t* const record = words_.data() + starts_[i];
  const uint64_t what = record[1] >> 32;
  IndexOperation operation;
  operation.kind = static_cast<Kind>(what & 0xff);
  operation.rank = static_cast<uint32_t>(record[1]);
  if ((what & kHasParent) != 0) operation.parent = record[2];
  operation.words = {record + kHeader, record[3]};
  return operation;
}

void OperationList::Count(const IndexOperation& operation) {
  switch (operation.kind) {
    case Kind::kQuery:
      ++queries_;
      query_keys_ += operation.blocks();
      return;
    case Kind::kStored:
      stored_ += operation.blocks();
      break;
    case Kind::kRemoved:
      removed_ += operation.blocks();
      break;
    case Kind::kCleared:
      break;
  }
  ranks_ = std::max(ranks_, operation.rank + 1);
}

}  // namespace fathom
