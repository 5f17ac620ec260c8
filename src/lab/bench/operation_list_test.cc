#include "lab/bench/operation_list.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <limits>

namespace fathom {
namespace {

using Kind = IndexOperation::Kind;
using Words = std::vector<uint64_t>;

Words Record(uint64_t rank, uint64_t what, uint64_t parent, const Words& words) {
  Words record = {0, rank | (what << 32), parent, words.size()};
  record.insert(record.end(), words.begin(), words.end());
  return record;
}

// A file that is gone at the end of the test.
struct ScratchFile {
  std::string path = testing::TempDir() + "operation_list_test." + std::to_string(getpid());
  ~ScratchFile() { std::remove(path.c_str()); }
};

OperationList Example() {
  const Words query = {1, 2, 3};
  const Words stored = {101, 1, 102, 2};
  const Words removed = {102};
  OperationList list;
  list.Add({Kind::kQuery, 0, {}, query});
  list.Add({Kind::kStored, 5, {}, stored});
  list.Add({Kind::kStored, 2, 102, stored});
  list.Add({Kind::kRemoved, 5, {}, removed});
  list.Add({Kind::kCleared, 5, {}, {}});
  return list;
}

TEST(OperationList, CountsEveryKeyOfAQueryAndEveryBlockStoredOrRemoved) {
  const OperationList list = Example();
  EXPECT_EQ(list.size(), 5u);
  EXPECT_EQ(list.ranks(), 6u);
  EXPECT_EQ(list.queries(), 1u);
  EXPECT_EQ(list.query_keys(), 3u);
  EXPECT_EQ(list.stored_blocks(), 4u);
  EXPECT_EQ(list.removed_blocks(), 1u);
  EXPECT_EQ(list.block_operations(), 8u);
}

TEST(OperationList, ReadsTheBytesThatTheFormatPrescribes) {
  ScratchFile file;
  const unsigned char bytes[] = {
      9, 0, 0, 0, 0, 0, 0, 0,  // deadline
      7, 0, 0, 0,              // rank
      1, 1, 0, 0,              // stored, with a parent
      5, 1, 0, 0, 0, 0, 0, 0,  // parent
      2, 0, 0, 0, 0, 0, 0, 0,  // words
      1, 2, 0, 0, 0, 0, 0, 0,  // engine hash
      3, 4, 0, 0, 0, 0, 0, 0,  // local hash
  };
  std::ofstream(file.path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes), sizeof(bytes));
  const auto list = OperationList::Read(file.path);
  ASSERT_TRUE(list) << list.error().what;
  ASSERT_EQ(list->size(), 1u);
  const IndexOperation operation = (*list)[0];
  EXPECT_EQ(operation.kind, Kind::kStored);
  EXPECT_EQ(operation.rank, 7u);
  EXPECT_EQ(operation.parent, 0x105u);
  EXPECT_EQ(Words(operation.words.begin(), operation.words.end()), (Words{0x201, 0x403}));
}

TEST(OperationList, ComesBackFromAFileAsItWas) {
  ScratchFile file;
  const OperationList list = Example();
  ASSERT_TRUE(list.Write(file.path));
  const auto read = OperationList::Read(file.path);
  ASSERT_TRUE(read) << read.error().what;
  ASSERT_EQ(read->size(), list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ((*read)[i].kind, list[i].kind);
    EXPECT_EQ((*read)[i].rank, list[i].rank);
    EXPECT_EQ((*read)[i].parent, list[i].parent);
    EXPECT_TRUE(std::ranges::equal((*read)[i].words, list[i].words));
  }
  EXPECT_EQ(read->block_operations(), list.block_operations());
  EXPECT_EQ(read->ranks(), list.ranks());
}

TEST(OperationList, RefusesARecordCutOffAnywhereButAtItsEnd) {
  const OperationList list = Example();
  const Words all(list.words().begin(), list.words().end());
  size_t whole = 0;
  for (size_t length = 0; length <= all.size(); ++length) {
    whole +=
        OperationList::Parse(Words(all.begin(), all.begin() + static_cast<long>(length))) ? 1 : 0;
  }
  EXPECT_EQ(whole, list.size() + 1);  // after each record, and nothing at all
}

TEST(OperationList, RefusesALengthThatWouldWrapAround) {
  for (const uint64_t n : {uint64_t{1}, uint64_t{1} << 61, std::numeric_limits<uint64_t>::max()}) {
    EXPECT_FALSE(OperationList::Parse({0, 0, 0, n})) << n;
  }
}

TEST(OperationList, RefusesRecordsThatMakeNoSense) {
  EXPECT_FALSE(OperationList::Parse(Record(0, 4, 0, {})));           // no such kind
  EXPECT_FALSE(OperationList::Parse(Record(0, 1 | 1 << 9, 0, {})));  // no such flag
  EXPECT_FALSE(OperationList::Parse(Record(0, 1, 0, {1, 2, 3})));    // half a pair
  EXPECT_FALSE(OperationList::Parse(Record(0, 3, 0, {1})));
  EXPECT_FALSE(OperationList::Parse(Record(0xffffffff, 2, 0, {1})));
  EXPECT_TRUE(OperationList::Parse(Record(0xffffffff, 0, 0, {1})));  // a query's rank is nothing
}

TEST(OperationList, RefusesAFileThatEndsInsideAWordOrIsNotThere) {
  ScratchFile file;
  std::ofstream(file.path, std::ios::binary).write("123456789", 9);
  EXPECT_FALSE(OperationList::Read(file.path));
  EXPECT_FALSE(OperationList::Read(file.path + ".missing"));
}

}  // namespace
}  // namespace fathom
