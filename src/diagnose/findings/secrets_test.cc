#include "diagnose/findings/secrets.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(WithoutSecrets, HidesValuesBesideAndBelowTheirNames) {
  EXPECT_EQ(
      WithoutSecrets("   - name: HF_TOKEN\n     value: hf_abc\n   - name: X\n     value: y\n"),
      "   - name: HF_TOKEN\n     value: ***\n   - name: X\n     value: y\n");
  EXPECT_EQ(WithoutSecrets(" HF_TOKEN: \"hf_abc\"\n"), " HF_TOKEN: \"***\n");
  EXPECT_EQ(WithoutSecrets("vllm serve m --api-key sk-1 --port 8000"),
            "vllm serve m --api-key ***");
  EXPECT_EQ(WithoutSecrets(" - --api-key=sk-1\n"), " - --api-key=***\n");
  EXPECT_EQ(WithoutSecrets("+ - --api-key\n+ - sk-1\n+ - --port\n"),
            "+ - --api-key\n+ - ***\n+ - --port\n");
  EXPECT_EQ(WithoutSecrets("[\"--api-key\", \"sk-1\"]"), "[\"--api-key\", \"***");
  EXPECT_EQ(WithoutSecrets("url: http://ada:hush@host:1/x"), "url: http://***@host:1/x");
}

TEST(WithoutSecrets, HidesTextsOfSeveralLines) {
  EXPECT_EQ(WithoutSecrets("tls.key: |\n  -----BEGIN\n  abc\nname: x\n"),
            "tls.key: |\n  ***\n  ***\nname: x\n");
  EXPECT_EQ(WithoutSecrets("- name: API_KEY\n  value: >-\n    sk-1\n- name: X\n  value: y\n"),
            "- name: API_KEY\n  value: >-\n    ***\n- name: X\n  value: y\n");
}

TEST(SecretLines, AreThoseWithValuesOfSecrets) {
  EXPECT_EQ(SecretLines("- name: HF_TOKEN\n  value: hf_abc\n- name: X\n  value: y\n"),
            (std::vector<bool>{false, true, false, false}));
  EXPECT_EQ(SecretLines("key: |\n  a\n\n  b\nx: y"),
            (std::vector<bool>{false, true, false, true, false}));
}

TEST(WithoutSecrets, LeavesEverythingElseAlone) {
  const std::string diff =
      "--- a/x.yaml\n+++ b/x.yaml\n@@ -1,2 +1,3 @@\n tokens_per_block: 32\n"
      "+        - name: DYN_KV_CACHE_BLOCK_SIZE\n+          value: \"32\"\n - --max-num-tokens\n";
  EXPECT_EQ(WithoutSecrets(diff), diff);
  EXPECT_EQ(WithoutSecrets(""), "");
}

}  // namespace
}  // namespace fathom
