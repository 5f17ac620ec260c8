#include "diagnose/doctor/kube_yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "diagnose/manifest/yaml_tree.h"

namespace fathom {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Yaml(std::string_view json) {
  std::string out;
  AppendYaml(out, *Json::Parse(json), 0);
  return out;
}

TEST(KubeYaml, LooksLikeWhatKubectlPrints) {
  EXPECT_EQ(Yaml(R"({"kind":"Pod","spec":{"containers":[{"name":"a","args":["--port","8000"],
                    "env":[{"name":"X","value":"true"}]},{"name":"b"}],"count":3,"none":null,
                    "empty":{},"list":[]}})"),
            "kind: Pod\n"
            "spec:\n"
            "  containers:\n"
            "    - name: a\n"
            "      args:\n"
            "        - --port\n"
            "        - \"8000\"\n"
            "      env:\n"
            "        - name: X\n"
            "          value: \"true\"\n"
            "    - name: b\n"
            "  count: 3\n"
            "  none: null\n"
            "  empty: {}\n"
            "  list: []\n");
}

TEST(KubeYaml, TextsOfSeveralLinesAreBlocks) {
  EXPECT_EQ(Yaml(R"({"a":"x: 1\n  y: 2\n","b":"x\n\ny","c":"x\n\n"})"),
            "a: |\n  x: 1\n    y: 2\nb: |-\n  x\n\n  y\nc: |+\n  x\n\n");
}

TEST(KubeYaml, HasWhatTheOperatorWroteAndNothingElse) {
  const auto object = Json::Parse(R"({"metadata":{"name":"x","uid":"1","managedFields":[{"a":1}],
      "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"copy","own":"kept"}},
      "spec":{"replicas":2},"status":{"readyReplicas":1}})");
  const std::string yaml = KubeObjectYaml(*object, "apps/v1", "Deployment");
  EXPECT_THAT(yaml, testing::StartsWith("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n"));
  EXPECT_THAT(yaml, HasSubstr("own: kept"));
  EXPECT_THAT(yaml, HasSubstr("replicas: 2"));
  for (const char* gone : {"managedFields", "copy", "readyReplicas", "uid"}) {
    EXPECT_THAT(yaml, Not(HasSubstr(gone)));
  }
}

TEST(KubeYaml, OfADeepDocumentIsNotLongForIt) {
  std::string json = "1";
  for (int i = 0; i < 500; ++i) json = "{\"a\":[" + json + "]}";
  EXPECT_LT(Yaml(json).size(), 20'000u);
}

// What the reader of manifests makes of a text that we wrote.
std::string ReadBack(const std::string& text) {
  Json::Object object;
  object.emplace_back("key", Json(text));
  Json::Array list;
  list.push_back(Json(std::move(object)));
  SourceFile file{"x.yaml", ""};
  AppendYaml(file.text, Json(std::move(list)), 0);
  const auto tree = YamlTree::Parse(Passage(file));
  if (!tree) return "unreadable: " + tree.error().what;
  const YamlNode* const value = tree->documents().at(0)->items.at(0)->Find("key");
  return value == nullptr ? "nothing" : value->text;
}

TEST(KubeYaml, IsReadBackAsItWas) {
  for (const char* text : {"true",     "1",
                           "",         " ",
                           "- x",      "a: b",
                           "#c",       "a #c",
                           "x\ny",     "x\ny\n",
                           "x\n\n\n",  " x\ny",
                           "x \ny",    "x\ny ",
                           "{",        "a\tb\n",
                           "\"q\"",    "*a",
                           "&a",       "!t",
                           "%d",       "@",
                           "`",        "a\r\nb",
                           "---\nx\n", "x\n---\n...\n",
                           "\n",       "\n\nx",
                           "ä\nö",     "null",
                           "~",        "0x10",
                           "1e3",      "/a/b"}) {
    EXPECT_EQ(ReadBack(text), text) << text;
  }
}

TEST(KubeYaml, GivesBackAnyTextOfLinesAndSpaces) {
  constexpr std::string_view kLetters = "aa \n\n:-#\"'|{]\t\\%";
  Random random(1);
  for (int i = 0; i < 3000; ++i) {
    std::string text(random.Below(12), ' ');
    for (char& letter : text) letter = kLetters[random.Below(kLetters.size())];
    ASSERT_EQ(ReadBack(text), text);
  }
}

}  // namespace
}  // namespace fathom
