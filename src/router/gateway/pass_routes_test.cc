#include "router/gateway/pass_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fathom {
namespace {

using ::testing::HasSubstr;

bool Passes(const PassRoutes& routes, std::string_view method, std::string_view path) {
  const PassedRoute* const found = routes.Find(path);
  return found != nullptr && found->Allows(method);
}

TEST(PassRoutes, PassesInference) {
  const PassRoutes routes;
  for (const char* path : {"/v1/chat/completions",
                           "/v1/completions",
                           "/v1/embeddings",
                           "/v1/responses",
                           "/v1/responses/resp_1/cancel",
                           "/v1/messages",
                           "/v1/messages/count_tokens",
                           "/v1/rerank",
                           "/rerank",
                           "/v1/score",
                           "/score",
                           "/classify",
                           "/pooling",
                           "/v1/audio/speech",
                           "/v1/audio/transcriptions",
                           "/v1/images/generations",
                           "/tokenize",
                           "/detokenize",
                           "/generate",
                           "/inference/v1/generate"}) {
    EXPECT_TRUE(Passes(routes, "POST", path)) << path;
    EXPECT_FALSE(Passes(routes, "GET", path)) << path;
  }
  EXPECT_TRUE(Passes(routes, "GET", "/v1/responses/resp_1"));
  EXPECT_TRUE(Passes(routes, "DELETE", "/v1/responses/resp_1"));
  EXPECT_FALSE(Passes(routes, "POST", "/v1/responses/resp_1"));
}

TEST(PassRoutes, PassesNothingElse) {
  const PassRoutes routes;
  for (const char* path : {"/v1/load_lora_adapter",
                           "/v1/unload_lora_adapter",
                           "/v1/other",
                           "/v1/",
                           "/v1",
                           "/",
                           "/v1/chat/completions/",
                           "/v1/chat/completions/render",
                           "/v1/chat",
                           "/V1/completions",
                           "/v1/responses/",
                           "/v1/responses//cancel",
                           "/v1/responses/a/b",
                           "/v1/responses/a/cancel/b",
                           "/v1/audio",
                           "/v1/audio/",
                           "/flush_cache",
                           "/update_weights_from_disk",
                           "/sleep",
                           "/reset",
                           "/health",
                           "/metrics",
                           "/v1/models",
                           "/workers",
                           "*"}) {
    EXPECT_EQ(routes.Find(path), nullptr) << path;
  }
}

TEST(PassRoutes, KnowsWhatARouteIs) {
  const PassRoutes routes;
  EXPECT_EQ(routes.Find("/v1/chat/completions")->route, Route::kChat);
  EXPECT_EQ(routes.Find("/v1/completions")->route, Route::kCompletions);
  EXPECT_EQ(routes.Find("/v1/embeddings")->route, Route::kEmbeddings);
  EXPECT_EQ(routes.Find("/v1/responses")->route, Route::kResponses);
  EXPECT_EQ(routes.Find("/generate")->route, Route::kGenerate);
  EXPECT_EQ(routes.Find("/inference/v1/generate")->route, Route::kInferenceGenerate);
  for (const char* path : {"/v1/rerank", "/rerank"}) {
    EXPECT_EQ(routes.Find(path)->route, Route::kRerank);
  }
  for (const char* path : {"/v1/score", "/score"}) {
    EXPECT_EQ(routes.Find(path)->route, Route::kScore);
  }
  EXPECT_EQ(routes.Find("/classify")->route, Route::kOther);
  EXPECT_TRUE(routes.Find("/v1/audio/speech")->forms);
  EXPECT_FALSE(routes.Find("/v1/chat/completions")->forms);
  EXPECT_FALSE(routes.Find("/v1/chat/completions")->open());
  EXPECT_TRUE(routes.Find("/v1/responses/x")->open());
}

TEST(PassRoutes, PassesWhatTheOperatorAdds) {
  const PassRoutes routes({"/v1/files", "/v1/files/*", "/v1/load_lora_adapter"});
  for (const char* method : {"GET", "POST", "PUT", "PATCH", "DELETE"}) {
    EXPECT_TRUE(Passes(routes, method, "/v1/files")) << method;
    EXPECT_TRUE(Passes(routes, method, "/v1/files/f1/content")) << method;
  }
  EXPECT_FALSE(Passes(routes, "HEAD", "/v1/files"));
  EXPECT_TRUE(Passes(routes, "POST", "/v1/load_lora_adapter"));
  EXPECT_FALSE(Passes(routes, "POST", "/v1/load_lora_adapter/x"));
}

TEST(PassRoutes, KeepsItsOwnPages) {
  const PassRoutes routes({"/*"});
  EXPECT_TRUE(Passes(routes, "GET", "/flush_cache"));
  for (const char* path : {"/live", "/ready", "/health", "/metrics", "/v1/models", "/v1/models/m",
                           "/workers", "/workers/1", "/debug/index"}) {
    EXPECT_EQ(routes.Find(path), nullptr) << path;
  }
}

TEST(PassRoutes, RefusesWhatIsNoPathOrItsOwn) {
  for (const char* path : {"/v1/files", "/v1/files/*", "/*", "/a.b"}) {
    EXPECT_TRUE(PassRoutes::Check(path)) << path;
  }
  for (const char* path : {"", "v1/files", "*", "/v1/*/x", "/v1/fi*", "/v1/../x", "/v1//x", "/a?b",
                           "/v1/{id}", "/v1/a%2fb", "http://x/y"}) {
    EXPECT_FALSE(PassRoutes::Check(path)) << path;
  }
  for (const char* path :
       {"/metrics", "/workers", "/workers/*", "/debug/*", "/debug/index", "/v1/models"}) {
    const auto refused = PassRoutes::Check(path);
    ASSERT_FALSE(refused) << path;
    EXPECT_THAT(refused.error().what, HasSubstr("page of the router"));
  }
}

}  // namespace
}  // namespace fathom
