#include <gmock/gmock.h>

#include "diagnose/lint/fixed_files.h"
#include "diagnose/lint/linter.h"

namespace fathom {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The lines on which a page sets a size without its note.
std::vector<uint32_t> BareSizes(std::string page, std::string name = "page.md") {
  std::vector<uint32_t> lines;
  for (const LintFinding& found :
       Lint(std::vector{SourceFile{std::move(name), std::move(page)}}).findings) {
    if (found.finding.id == FindingId::kBlockSizeNote) lines.push_back(found.finding.place.line);
  }
  return lines;
}

std::string Block(std::string_view text, std::string_view language = "bash") {
  return std::string("```").append(language).append("\n").append(text).append("\n```\n");
}

constexpr std::string_view kWithNote = "Must match: vLLM default: 16, TRT-LLM default: 32.\n\n";

TEST(NoteRules, FindSettingsOfRoutersInFencedBlocks) {
  for (const char* setting :
       {"DYN_KV_CACHE_BLOCK_SIZE=16", "DYN_KV_CACHE_BLOCK_SIZE: \"16\"",
        "x --kv-cache-block-size 16", "- name: DYN_KV_CACHE_BLOCK_SIZE\n  value: '32'",
        "KvRouter(block_size=16)", "kv_cache_block_size: 64", "--router-block-size=128"}) {
    EXPECT_THAT(BareSizes(Block(setting)), ElementsAre(2)) << setting;
    EXPECT_THAT(BareSizes(std::string(kWithNote) + Block(setting)), IsEmpty()) << setting;
  }
}

TEST(NoteRules, LeaveOtherNumbersAlone) {
  for (const char* text :
       {"vllm serve m --block-size 16", "tokens_per_block: 32", "{\"block_size\": 16}",
        "DYN_KV_CACHE_BLOCK_SIZE=0", "DYN_KV_CACHE_BLOCK_SIZE=$SIZE",
        "MY_DYN_KV_CACHE_BLOCK_SIZE=16", "DYN_KV_CACHE_BLOCK_SIZES=16",
        "DYN_KV_CACHE_BLOCK_SIZE=16k", "DYN_KV_CACHE_BLOCK_SIZE",
        "- name: DYN_KV_CACHE_BLOCK_SIZE\n  valueFrom: 16", "my_block_size=16"}) {
    EXPECT_THAT(BareSizes(Block(text)), IsEmpty()) << text;
  }
  EXPECT_THAT(BareSizes("DYN_KV_CACHE_BLOCK_SIZE=16 in a sentence\n"), IsEmpty());
  EXPECT_THAT(BareSizes(Block("DYN_KV_CACHE_BLOCK_SIZE=16"), "not-a-page.txt"), IsEmpty());
}

TEST(NoteRules, NeedTheNoteNearAndWithItsNumbers) {
  const std::string block = Block("DYN_KV_CACHE_BLOCK_SIZE=16");
  EXPECT_THAT(BareSizes("It must match the backend.\n" + block), ElementsAre(3));
  EXPECT_THAT(BareSizes(std::string(kWithNote) + std::string(9, '\n') + block), ElementsAre(13));
  EXPECT_THAT(BareSizes(block + "\n\n" + std::string(kWithNote)), IsEmpty());
  EXPECT_THAT(BareSizes(Block("DYN_KV_CACHE_BLOCK_SIZE=32  # match TRT-LLM's (default: 32)")),
              IsEmpty());
  EXPECT_THAT(BareSizes(Block("DYN_KV_CACHE_BLOCK_SIZE=16  # match TRT-LLM's (default: 32)")),
              ElementsAre(2));
}

TEST(NoteRules, WriteTheNoteWhereACommentMayStand) {
  const auto fixed = [](const std::string& page) {
    return FixFiles({SourceFile{"page.md", page}}).files[0].text;
  };
  const std::string yaml = Block("env:\n  DYN_KV_CACHE_BLOCK_SIZE: \"16\"\n  X: y", "yaml");
  EXPECT_NE(fixed(yaml).find("\"16\"\n  # Must match the backend's"), std::string::npos);
  EXPECT_THAT(BareSizes(fixed(yaml)), IsEmpty());
  for (const std::string& page :
       {Block("a \\\n --kv-cache-block-size 16 \\\n b"), Block("a \\\n --kv-cache-block-size 16"),
        Block("DYN_KV_CACHE_BLOCK_SIZE=16", "text"),
        std::string("```sh\nx --kv-cache-block-size 16")}) {
    EXPECT_EQ(fixed(page), page);
    EXPECT_THAT(BareSizes(page), testing::SizeIs(1)) << page;
  }
}

}  // namespace
}  // namespace fathom
