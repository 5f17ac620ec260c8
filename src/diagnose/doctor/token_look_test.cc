#include "diagnose/doctor/token_look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnose/doctor/live_look.h"
#include "testing/model_fixture.h"
#include "testing/page_server.h"

namespace fathom {
namespace {

using ::testing::HasSubstr;

TokenComparison Compared(std::vector<TokenId> ours, std::vector<TokenId> theirs) {
  const auto model = SmallModel();
  TokenComparison comparison;
  Compare(ours, theirs, model->tokenizer(), comparison);
  return comparison;
}

TEST(TokenComparison, FindsTheFirstDifference) {
  const TokenComparison comparison = Compared({260, 104, 105}, {260, kHello, 105});
  EXPECT_TRUE(comparison.asked);
  EXPECT_FALSE(comparison.equal);
  EXPECT_EQ(comparison.position, 1u);
  EXPECT_EQ(comparison.our_id, 104u);
  EXPECT_EQ(comparison.our_piece, "h");
  EXPECT_EQ(comparison.their_piece, "hello");
  EXPECT_FALSE(comparison.only_bos);
}

TEST(TokenComparison, KnowsWhereOneSideEnds) {
  const TokenComparison comparison = Compared({1, 2}, {1, 2, 3});
  EXPECT_EQ(comparison.position, 2u);
  EXPECT_EQ(comparison.our_id, std::nullopt);
  EXPECT_EQ(comparison.their_id, 3u);
  EXPECT_FALSE(comparison.only_bos);
}

TEST(TokenComparison, RecognisesABosThatOneSideAlonePutsFirst) {
  EXPECT_TRUE(Compared({kBegin, 1, 2}, {1, 2}).only_bos);
  EXPECT_TRUE(Compared({1, 2}, {kBegin, 1, 2}).only_bos);
  EXPECT_TRUE(Compared({1, 2}, {1, 2}).equal);
  EXPECT_TRUE(Compared({}, {}).equal);
}

TokenLook LookWith(const PageServer::Page& tokenize) {
  PageServer server({{"GET /v1/models", {200, R"({"data":[{"id":"m","owned_by":"vllm"}]})"}},
                     {"POST /tokenize", tokenize}});
  const LiveTargets targets{.worker_urls = {server.url()}, .model = SmallModel()};
  return *LookLive(targets).workers.at(0).tokens;
}

TEST(TokenLook, SaysWhatDiffers) {
  const TokenLook look = LookWith({200, R"({"count":2,"tokens":[260,84]})"});
  EXPECT_TRUE(look.Compared());
  EXPECT_TRUE(look.Differs());
  const TokenComparison& sentence = look.comparisons.at(0);
  EXPECT_EQ(sentence.position, 2u);
  EXPECT_EQ(sentence.theirs, 2u);
  EXPECT_EQ(sentence.our_piece, "he");
  EXPECT_EQ(sentence.problem, "");
}

TEST(TokenLook, FindsNoDifferenceWhereThereIsNone) {
  const auto model = SmallModel();
  const auto encoder = model->Borrow();
  const auto ids = (*encoder).Encode("The quick brown fox jumps over the lazy dog.", true);
  std::string list;
  for (const TokenId id : *ids) list += (list.empty() ? "" : ",") + std::to_string(id);
  const TokenLook look = LookWith({200, R"({"tokens":[)" + list + "]}"});
  EXPECT_TRUE(look.comparisons.at(0).equal);
}

TEST(TokenLook, DoesNotTakeAnEngineThatCannotSayForOneThatDiffers) {
  for (const PageServer::Page& page :
       {PageServer::Page{404, "{}"}, PageServer::Page{200, "{}"}, PageServer::Page{200, "["},
        PageServer::Page{200, R"({"tokens":[-1,"x"]})"}, PageServer::Page{500, ""}}) {
    const TokenLook look = LookWith(page);
    EXPECT_FALSE(look.Compared()) << page.body;
    EXPECT_FALSE(look.Differs());
    EXPECT_FALSE(look.problem.empty());
  }
  EXPECT_THAT(LookWith({404, ""}).problem, HasSubstr("404"));
}

}  // namespace
}  // namespace fathom
