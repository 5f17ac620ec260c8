#include "diagnose/manifest/edit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnose/manifest/deployment_reader.h"

namespace fathom {
namespace {

using testing::HasSubstr;

class Edit : public testing::Test {
 protected:
  // The program of that text at `index`.
  const Program& Read(std::string name, std::string text, size_t index = 0) {
    file_ = {std::move(name), std::move(text)};
    read_ = ReadDeploymentFiles({&file_, 1});
    EXPECT_TRUE(read_.unread.empty()) << read_.unread[0].problem;
    return read_.deployment.programs.at(index);
  }

  std::string After(const std::optional<TextEdit>& edit) const {
    return edit ? Apply(file_, {&*edit, 1}) : "nothing";
  }

  SourceFile file_;
  ReadDeployment read_;
};

constexpr std::string_view kFragment = R"(Frontend:
  componentType: frontend
  envs:
    - name: DYN_ROUTER_MODE
      value: kv
  replicas: 1
)";

TEST_F(Edit, AddsAVariableToAList) {
  const Program& program = Read("a.yaml", std::string(kFragment));
  EXPECT_EQ(After(SetVariable(file_, program, "DYN_KV_CACHE_BLOCK_SIZE", "32", "as the engine")),
            R"(Frontend:
  componentType: frontend
  envs:
    - name: DYN_ROUTER_MODE
      value: kv
    - name: DYN_KV_CACHE_BLOCK_SIZE
      value: "32"  # as the engine
  replicas: 1
)");
}

TEST_F(Edit, AddsNoArgumentsToWhatTheOperatorOfDynamoStarts) {
  const Program& program = Read("a.yaml", std::string(kFragment));
  EXPECT_EQ(SetFlag(file_, program, "--kv-cache-block-size", "32"), std::nullopt);
}

TEST_F(Edit, MakesTheListOfVariables) {
  const Program& program = Read("a.yaml", "Frontend:\n  componentType: frontend\n  replicas: 1\n");
  EXPECT_EQ(After(SetVariable(file_, program, "A", "1", "")),
            "Frontend:\n  componentType: frontend\n  envs:\n    - name: A\n      value: \"1\"\n"
            "  replicas: 1\n");
}

TEST_F(Edit, ReplacesAVariableAsItIsQuoted) {
  const Program& plain = Read("a.yaml", std::string(kFragment));
  EXPECT_THAT(After(SetVariable(file_, plain, "DYN_ROUTER_MODE", "random", "no")),
              HasSubstr("value: random\n"));
  const Program& quoted = Read("a.yaml",
                               "Frontend:\n  componentType: frontend\n  envs:\n"
                               "  - {name: A, value: '16'} # why\n");
  EXPECT_THAT(After(SetVariable(file_, quoted, "A", "32", "")),
              HasSubstr("  - {name: A, value: '32'} # why\n"));
}

constexpr std::string_view kPod = R"(apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - name: c
    image: vllm/vllm-openai
    ARGS
    workingDir: /
)";

std::string PodWith(std::string_view arguments) {
  std::string text(kPod);
  return text.replace(text.find("ARGS"), 4, arguments);
}

TEST_F(Edit, AddsAFlagInTheFormOfTheOthers) {
  EXPECT_EQ(After(SetFlag(file_, Read("a.yaml", PodWith("args:\n    - --model\n    - m")),
                          "--block-size", "32")),
            PodWith("args:\n    - --model\n    - m\n    - --block-size\n    - \"32\""));
  EXPECT_EQ(After(SetFlag(file_, Read("a.yaml", PodWith("args:\n    - --model=m # x")),
                          "--block-size", "32")),
            PodWith("args:\n    - --model=m # x\n    - --block-size=32"));
  EXPECT_EQ(After(SetFlag(file_, Read("a.yaml", PodWith("args: [\"--model\", m]")), "--block-size",
                          "32")),
            PodWith("args: [\"--model\", m, \"--block-size\", \"32\"]"));
  EXPECT_EQ(After(SetFlag(file_, Read("a.yaml", PodWith("args: []")), "--x", "")),
            PodWith("args: [\"--x\"]"));
  EXPECT_EQ(After(SetFlag(file_, Read("a.yaml", PodWith("tty: true")), "--block-size", "32")), [] {
    std::string text = PodWith("tty: true");
    return text.insert(text.find("    tty"), "    args:\n      - --block-size\n      - \"32\"\n");
  }());
}

TEST_F(Edit, AddsJsonInQuotesThatKeepIt) {
  EXPECT_EQ(After(SetFlag(file_, Read("a.yaml", PodWith("args:\n    - --model\n    - m")),
                          "--kv-events-config", "{\"a\": \"b\"}")),
            PodWith("args:\n    - --model\n    - m\n    - --kv-events-config\n    - '{\"a\": "
                    "\"b\"}'"));
}

TEST_F(Edit, ReplacesTheValueOfAFlagAlone) {
  EXPECT_EQ(After(SetFlag(file_, Read("a.yaml", PodWith("args: [--block-size=16, x]")),
                          "--block-size", "32")),
            PodWith("args: [--block-size=32, x]"));
  EXPECT_EQ(After(SetFlag(file_, Read("a.yaml", PodWith("args: [\"--block-size\", \"16\"]")),
                          "--block-size", "32")),
            PodWith("args: [\"--block-size\", \"32\"]"));
  const std::string shell = "vllm serve m --kv-events-config '{\"a\": 1}' --x\n";
  EXPECT_EQ(After(SetFlag(file_, Read("a.sh", shell), "--kv-events-config", "{\"b\": 2}")),
            "vllm serve m --kv-events-config '{\"b\": 2}' --x\n");
  const std::string equals = "vllm serve m --kv-events-config=\"{\\\"a\\\": 1}\"\n";
  EXPECT_EQ(After(SetFlag(file_, Read("a.sh", equals), "--kv-events-config", "{\"b\": 2}")),
            "nothing");
}

TEST_F(Edit, AddsAFlagToACommandLine) {
  EXPECT_EQ(After(SetFlag(file_, Read("a.sh", "vllm serve m --x 1 # c\n"), "--block-size", "32")),
            "vllm serve m --x 1 --block-size 32 # c\n");
  EXPECT_EQ(After(SetFlag(file_, Read("a.sh", "vllm serve m \\\n    --x 1\nwait\n"),
                          "--kv-events-config", "{}")),
            "vllm serve m \\\n    --x 1 \\\n    --kv-events-config '{}'\nwait\n");
  EXPECT_EQ(After(SetFlag(file_, Read("a.sh", "sh -c 'vllm serve m'\n"), "--block-size", "32")),
            "sh -c 'vllm serve m --block-size 32'\n");
  EXPECT_EQ(After(SetFlag(file_, Read("a.sh", "sh -c 'vllm serve m'\n"), "--x", "{}")), "nothing");
}

TEST_F(Edit, SetsKeysOfAnEngineFile) {
  const std::string text = "kv_cache_config:\n  enable_block_reuse: true\nmax_batch_size: 4\n";
  EXPECT_EQ(
      After(SetKey(file_, Read("a.yaml", text), "kv_cache_config.tokens_per_block", "64", "why")),
      "kv_cache_config:\n  tokens_per_block: 64  # why\n  enable_block_reuse: true\n"
      "max_batch_size: 4\n");
  EXPECT_EQ(
      After(SetKey(file_, Read("a.yaml", text), "kv_cache_config.enable_block_reuse", "false", "")),
      "kv_cache_config:\n  enable_block_reuse: false\nmax_batch_size: 4\n");
  EXPECT_EQ(After(SetKey(file_, Read("a.yaml", "enable_attention_dp: true"),
                         "kv_cache_config.event_buffer_max_size", "16384", "")),
            "enable_attention_dp: true\nkv_cache_config:\n  event_buffer_max_size: 16384");
  EXPECT_EQ(After(SetKey(file_, Read("a.yaml", "kv_cache_config: {x: 1}\n"),
                         "kv_cache_config.event_buffer_max_size", "1", "")),
            "nothing");
}

TEST_F(Edit, KeepsCarriageReturns) {
  const Program& program =
      Read("a.yaml",
           "Frontend:\r\n  componentType: frontend\r\n  envs:\r\n  - name: A\r\n"
           "    value: b\r\n");
  EXPECT_EQ(After(SetVariable(file_, program, "C", "d", "")),
            file_.text + "  - name: C\r\n    value: \"d\"\r\n");
}

TEST_F(Edit, DoesNotTouchAnotherFile) {
  const Program& program = Read("a.yaml", std::string(kFragment));
  const SourceFile other{"b.yaml", file_.text};
  EXPECT_EQ(SetVariable(other, program, "DYN_ROUTER_MODE", "kv", ""), std::nullopt);
  EXPECT_EQ(SetVariable(other, program, "A", "kv", ""), std::nullopt);
}

TEST_F(Edit, LeavesOverlappingEditsOut) {
  const SourceFile file{"a", "0123456789"};
  const TextEdit edits[] = {{"a", {5, 2}, "B"}, {"a", {1, 2}, "A"}, {"a", {6, 2}, "C"},
                            {"b", {0, 1}, "D"}, {"a", {9, 5}, "E"}, {"a", {10, 0}, "F"},
                            {"a", {10, 0}, "G"}};
  EXPECT_EQ(Apply(file, edits), "0A34B789FG");
}

std::string DiffOf(std::string name, std::string before, std::string_view after) {
  return UnifiedDiff(SourceFile{std::move(name), std::move(before)}, after);
}

TEST(UnifiedDiff, IsEmptyForEqualTexts) {
  EXPECT_EQ(DiffOf("a", "x\n", "x\n"), "");
  EXPECT_EQ(DiffOf("a", "", ""), "");
}

TEST(UnifiedDiff, HasThreeLinesAroundEachChange) {
  EXPECT_EQ(DiffOf("a.yaml", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"),
            "--- a/a.yaml\n+++ b/a.yaml\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST(UnifiedDiff, PutsFarChangesIntoHunksOfTheirOwn) {
  std::string before;
  for (int i = 0; i < 20; ++i) before += fmt::format("{}\n", i);
  std::string after = before;
  after.insert(after.find("2\n"), "new\n");
  after.erase(after.find("18\n"), 3);
  EXPECT_EQ(DiffOf("a", before, after),
            "--- a/a\n+++ b/a\n@@ -1,5 +1,6 @@\n 0\n 1\n+new\n 2\n 3\n 4\n"
            "@@ -16,5 +17,4 @@\n 15\n 16\n 17\n-18\n 19\n");
}

TEST(UnifiedDiff, SaysWhereALastLineHasNoEnd) {
  EXPECT_EQ(DiffOf("a", "x", "x\ny"),
            "--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n-x\n\\ No newline at end of file\n+x\n+y\n\\ No "
            "newline at end of file\n");
  EXPECT_EQ(DiffOf("a", "", "x\n"), "--- a/a\n+++ b/a\n@@ -0,0 +1 @@\n+x\n");
}

TEST(UnifiedDiff, NamesTheFolderWhereItApplies) {
  SourceFile file{"/srv/fleet/a b.yaml", "x\n"};
  file.patch_name = "a b.yaml";
  file.patch_folder = "/srv/fleet";
  EXPECT_EQ(
      UnifiedDiff(file, "y\n"),
      "# patch -p1 -d '/srv/fleet'\n--- a/a b.yaml\t\n+++ b/a b.yaml\t\n@@ -1 +1 @@\n-x\n+y\n");
  file.patch_name = "a\n+++ b/other";
  EXPECT_EQ(UnifiedDiff(file, "y\n"), "") << "a name must not begin a line";
}

TEST(DiffToPassOn, LeavesOutLinesWithSecretsAndKeepsBothMarginsEqual) {
  const SourceFile file{"a.yaml", "1\n2\nHF_TOKEN: hf_abc\n4\n5\n6\n7\n8\n"};
  EXPECT_EQ(DiffToPassOn(file, "1\n2\nHF_TOKEN: hf_abc\n4\nfive\n6\n7\n8\n"),
            "--- a/a.yaml\n+++ b/a.yaml\n@@ -4,3 +4,3 @@\n 4\n-5\n+five\n 6\n");
  EXPECT_EQ(DiffToPassOn(file, "1\n2\nHF_TOKEN: hf_abc\nfour\n5\n6\n7\n8\n"),
            "--- a/a.yaml\n+++ b/a.yaml\n@@ -4 +4 @@\n-4\n+four\n");
}

TEST(DiffToPassOn, SplitsAHunkAtASecret) {
  const SourceFile file{"a.yaml", "1\n2\n3\nAPI_KEY: k\n5\n6\n7\n"};
  EXPECT_EQ(DiffToPassOn(file, "1\ntwo\n3\nAPI_KEY: k\n5\nsix\n7\n"),
            "--- a/a.yaml\n+++ b/a.yaml\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n"
            "@@ -5,3 +5,3 @@\n 5\n-6\n+six\n 7\n");
}

TEST(DiffToPassOn, IsEmptyWhereAChangedLineHasASecret) {
  const SourceFile file{"a.sh", "vllm serve m --api-key sk-1\n"};
  EXPECT_EQ(DiffToPassOn(file, "vllm serve m --api-key sk-1 --block-size 16\n"), "");
}

}  // namespace
}  // namespace fathom
