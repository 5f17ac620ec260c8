#include "diagnose/doctor/size_sightings.h"

#include <gmock/gmock.h>

namespace fathom {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

LookedAtWorker WorkerWith(std::string url, uint32_t size) {
  LookedAtWorker worker;
  worker.look.url = std::move(url);
  worker.look.reached = true;
  worker.look.report.engine = EngineKind::kTrtllm;
  worker.look.report.block_size = size;
  worker.look.models = {{.id = "llama"}};
  return worker;
}

DynamoLook DynamoWith(std::string model, double size) {
  DynamoLook dynamo;
  dynamo.url = "http://frontend:8000";
  dynamo.reached = true;
  dynamo.models = {{.name = std::move(model), .block_size = size}};
  return dynamo;
}

std::vector<Finding> SizeFindings(const CaseFile& seen) {
  FindingBook book;
  DiagnoseSizes(SightingsOf(seen), book);
  return book.Take();
}

TEST(SizeSightings, FindAMismatchBetweenTwoRunningServers) {
  CaseFile seen;
  seen.live.dynamo = DynamoWith("llama", 16);
  seen.live.workers = {WorkerWith("http://a:1", 32), WorkerWith("http://b:1", 32)};
  const auto findings = SizeFindings(seen);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, FindingId::kBlockSizeMismatch);
  EXPECT_EQ(findings[0].subject, "http://a:1, http://b:1");
  EXPECT_EQ(findings[0].message, "The router expects a block size of 16 tokens, the engine has 32");
  EXPECT_EQ(findings[0].fixes[0].setting, "DYN_KV_CACHE_BLOCK_SIZE=32");
  EXPECT_THAT(findings[0].fixes[1].setting, HasSubstr("tokens_per_block: 16"));
}

TEST(SizeSightings, FindAConflictBetweenWorkersOfOneModel) {
  CaseFile seen;
  seen.live.workers = {WorkerWith("http://a:1", 16), WorkerWith("http://b:1", 32)};
  const auto findings = SizeFindings(seen);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, FindingId::kBlockSizeConflict);
}

RouterLook FathomWith(std::vector<RoutedWorker> workers) {
  RouterLook router;
  router.url = "http://fathom:8000";
  router.reached = true;
  router.workers = std::move(workers);
  return router;
}

RoutedWorker Routed(uint64_t id, std::string url, uint32_t size) {
  RoutedWorker worker;
  worker.id = id;
  worker.url = std::move(url);
  worker.models = {"llama"};
  worker.state = "ready";
  worker.block_size = size;
  worker.block_size_source = "events";
  worker.ranks = {{.rank = 0, .trust = "trusted"}};
  return worker;
}

TEST(SizeSightings, AllowARouterThatServesSizesSideBySide) {
  CaseFile seen;
  seen.live.router = FathomWith({Routed(1, "http://a:1", 16), Routed(2, "http://b:1", 32)});
  seen.live.workers = {WorkerWith("http://a:1", 16), WorkerWith("http://b:1", 32)};
  EXPECT_THAT(SizeFindings(seen), IsEmpty());
  seen.live.router->workers[1].state = "excluded";
  EXPECT_THAT(SizeFindings(seen), SizeIs(1)) << "then it does not";
}

TEST(SizeSightings, TakeNoSettingFromARouterThatHasNone) {
  CaseFile seen;
  RoutedWorker late = Routed(2, "http://b:1", 32);
  late.state = "excluded";
  late.cause = "block_size_conflict";
  seen.live.router = FathomWith({Routed(1, "http://a:1", 16), late});
  seen.live.router->counters.mismatches = {
      {.worker = "1", .configured = 16, .reported = 16, .events = 0},
      {.worker = "2", .configured = 16, .reported = 32, .events = 1}};
  const auto findings = SizeFindings(seen);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, FindingId::kBlockSizeConflict);
  for (const Fix& fix : findings[0].fixes) {
    EXPECT_THAT(fix.what, testing::Not(HasSubstr("Remove the block size")));
  }
}

TEST(SizeSightings, AdviseNothingThatBreaksAnotherWorker) {
  CaseFile seen;
  RoutedWorker odd = Routed(2, "http://b:1", 32);
  odd.ranks[0] = {.rank = 0, .trust = "doubted", .cause = "block_size_mismatch"};
  seen.live.router = FathomWith({Routed(1, "http://a:1", 16), odd});
  seen.live.router->counters.mismatches = {
      {.worker = "2", .configured = 16, .reported = 32, .events = 9}};
  for (const Finding& finding : SizeFindings(seen)) {
    if (finding.id != FindingId::kBlockSizeMismatch) continue;
    EXPECT_THAT(finding.fixes[0].what,
                HasSubstr("Set the engine's block size to the router's: 16"));
    EXPECT_EQ(finding.fixes[1].setting, "--block-size-conflict mixed");
    return;
  }
  FAIL() << "no mismatch";
}

TEST(SizeSightings, AllowModelsTheirOwnSizes) {
  CaseFile seen;
  seen.live.workers = {WorkerWith("http://a:1", 16), WorkerWith("http://b:1", 32)};
  seen.live.workers[1].look.models[0].id = "qwen";
  EXPECT_THAT(SizeFindings(seen), IsEmpty());
}

TEST(SizeSightings, HoldTheEventsAgainstTheSettingOfARunningFathom) {
  CaseFile seen;
  RouterLook router;
  router.url = "http://fathom:8000";
  router.reached = true;
  router.workers = {{.url = "http://a:1",
                     .models = {"llama"},
                     .block_size = 16,
                     .block_size_source = "configured"}};
  seen.live.router = router;
  LookedAtWorker worker = WorkerWith("http://a:1", 0);
  StreamLook stream;
  stream.source.endpoint = "tcp://a:5557";
  stream.block_sizes = {32};
  worker.streams = {stream};
  seen.live.workers = {worker};
  const auto findings = SizeFindings(seen);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, FindingId::kBlockSizeMismatch);
  EXPECT_THAT(findings[0].fixes[0].what, HasSubstr("Remove the block size from the router"));
  EXPECT_THAT(findings[0].evidence[1], HasSubstr("tcp://a:5557"));
}

}  // namespace
}  // namespace fathom
