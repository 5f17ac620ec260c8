#include "router/fleet/block_size_words.h"

#include <gtest/gtest.h>

#include <string>

namespace fathom {
namespace {

using Kind = SizeRemark::Kind;

TEST(BlockSizeWords, AreThoseThatUsersAskedFor) {
  SizeRemark remark{
      .kind = Kind::kMismatch, .engine = EngineKind::kTrtllm, .size = 32, .other = 16};
  EXPECT_EQ(WordsOf(remark),
            "Frontend KV block size (16) does not match worker block size (32).\n"
            "Set DYN_KV_CACHE_BLOCK_SIZE=32 on the frontend or configure tokens_per_block=16 on "
            "workers.\n"
            "KV-aware routing will not function until block sizes match.");
  remark.engine = EngineKind::kVllm;
  EXPECT_NE(WordsOf(remark).find("or configure --block-size 16 on workers."), std::string::npos);
  remark.engine = EngineKind::kSglang;
  EXPECT_NE(WordsOf(remark).find("or configure --page-size 16 on workers."), std::string::npos);
  remark = {.kind = Kind::kAgreed, .size = 32, .source = SizeSource::kReport};
  EXPECT_EQ(WordsOf(remark), "Auto-configured KV block size to 32 (from worker reports)");
}

TEST(BlockSizeWords, BeginNoLineWithTheNameOfAModel) {
  SizeRemark remark{.kind = Kind::kConflictAtStart};
  remark.model = "m\n2026-01-01T00:00:00Z ERROR forged";
  remark.claims = {{.url = "http://a:1", .size = 16}, {.url = "http://b:1", .size = 32}};
  EXPECT_EQ(WordsOf(remark).find("\n2026"), std::string::npos);
}

}  // namespace
}  // namespace fathom
