#include "diagnose/doctor/live_diagnosis.h"

#include <gmock/gmock.h>

namespace fathom {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

RouterLook HealthyRouter() {
  RouterLook router;
  router.url = "http://fathom:8000";
  router.reached = true;
  router.ready = true;
  router.status = "ok";
  router.decisions.mode = "kv";
  for (const char* url : {"http://a:1", "http://b:1"}) {
    RoutedWorker worker;
    worker.url = url;
    worker.state = "ready";
    worker.engine = "vllm";
    worker.ranks = {{.rank = 0, .trust = "trusted", .blocks = 100}};
    router.workers.push_back(worker);
  }
  return router;
}

std::vector<Finding> FindingsOf(const RouterLook& router) {
  FindingBook book;
  DiagnoseRouter(router, book);
  return book.Take();
}

std::vector<Finding> FindingsOf(const LookedAtWorker& worker) {
  FindingBook book;
  DiagnoseWorker(worker, 2, book);
  return book.Take();
}

LookedAtWorker HealthyWorker() {
  LookedAtWorker worker;
  worker.look.url = "http://a:1";
  worker.look.reached = true;
  worker.look.report.engine = EngineKind::kVllm;
  worker.look.report.block_size = 16;
  worker.look.report.prefix_caching = true;
  worker.look.events.how = PublishedEvents::How::kStream;
  worker.look.events.sources = {{.endpoint = "tcp://a:5557", .replay = "tcp://a:5657"}};
  StreamLook stream;
  stream.source = worker.look.events.sources[0];
  stream.listened = stream.connected = true;
  stream.seconds = 10;
  stream.batches = 100;
  stream.block_sizes = {16};
  stream.median_lag = 0.01;
  worker.streams = {stream};
  return worker;
}

TEST(RouterDiagnosis, SaysNothingOfAHealthyFleet) {
  EXPECT_THAT(FindingsOf(HealthyRouter()), IsEmpty());
}

TEST(RouterDiagnosis, FindsPromptsThatAreNotReadWhereEveryRankIsTrusted) {
  RouterLook router = HealthyRouter();
  router.models = {{.model = "read", .status = "ok"},
                   {.model = "m",
                    .status = "degraded",
                    .cause = "prompts_unread",
                    .share = 0.9,
                    .reason = "no_tokenizer",
                    .route = "chat",
                    .engine = "trtllm",
                    .cost_tokens = 4800,
                    .fix = "give the router the model's files"}};
  router.counters.unread = {{"no_tokenizer", 45}, {"timeout", 0}};
  router.counters.wasted = {{"prompts_unread", 300}};
  const auto findings = FindingsOf(router);
  ASSERT_THAT(findings, SizeIs(1));
  const Finding& finding = findings[0];
  EXPECT_EQ(finding.id, FindingId::kPromptsUnread);
  EXPECT_EQ(finding.severity, Severity::kError);
  EXPECT_EQ(finding.subject, "model m");
  ASSERT_THAT(finding.evidence, SizeIs(4));
  EXPECT_THAT(finding.evidence[0], HasSubstr("90 % of the last prompts unread; the latest: route "
                                             "chat, engine trtllm, reason no_tokenizer ("));
  EXPECT_THAT(finding.evidence[1], HasSubstr("4800 prompt tokens"));
  EXPECT_THAT(finding.evidence[2], HasSubstr("45 prompts of all models"));
  EXPECT_THAT(finding.evidence[3], HasSubstr("about 300 tokens"));
  EXPECT_EQ(finding.fixes.at(0).what, "Give the router the model's files");
  EXPECT_EQ(finding.fixes.at(1).setting, "--model-path DIR");
  EXPECT_EQ(finding.gain, 0.9);
}

TEST(RouterDiagnosis, SaysWhichSourceCannotBeReadAndWhy) {
  RouterLook router = HealthyRouter();
  router.sources = {{.source = "dns+http://pods:1", .status = "ok", .workers = 2},
                    {.source = "k8s://prod/vllm:http",
                     .status = "stale",
                     .error = "403 forbidden: cannot watch endpointslices in namespace prod",
                     .workers = 3}};
  const auto findings = FindingsOf(router);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, FindingId::kSourceStale);
  EXPECT_EQ(findings[0].subject, "k8s://prod/vllm:http");
  EXPECT_THAT(findings[0].why, HasSubstr("Known workers stay"));
  EXPECT_THAT(findings[0].evidence.at(0), HasSubstr("cannot watch endpointslices in namespace"));
  router.sources[1].workers = 0;
  EXPECT_GT(FindingsOf(router).at(0).gain, findings[0].gain);
}

TEST(RouterDiagnosis, ARouterThatWaitsForTrustStillServes) {
  RouterLook router = HealthyRouter();
  router.ready = false;
  router.not_ready_because = "prompts of 1 models are routed by load (--ready-when trusted)";
  EXPECT_THAT(FindingsOf(router).at(0).why, HasSubstr("Requests succeed"));
  router.not_ready_because = "there are no workers";
  EXPECT_THAT(FindingsOf(router).at(0).why, HasSubstr("Every request is refused"));
}

TEST(RouterDiagnosis, PromptsThatAreComparedByTextAreNoProblem) {
  RouterLook router = HealthyRouter();
  router.models = {{.model = "m", .status = "ok", .cause = "prompts_by_text", .share = 1}};
  EXPECT_THAT(FindingsOf(router), IsEmpty());
}

TEST(RouterDiagnosis, MakesAFindingOfEveryCauseOfDoubt) {
  for (const char* cause :
       {"block_size_mismatch", "prefix_caching_off", "no_events", "tokens_differ",
        "unsupported_groups", "event_gap", "event_lag", "prediction_drift", "churn"}) {
    RouterLook router = HealthyRouter();
    RoutedRank& rank = router.workers[1].ranks[0];
    rank.trust = "doubted";
    rank.cause = cause;
    rank.evidence = "64 requests and no event";
    rank.fix = "turn it on";
    rank.cost_tokens = 51200;
    const auto findings = FindingsOf(router);
    ASSERT_THAT(findings, SizeIs(1)) << cause;
    std::string name = cause;
    std::ranges::replace(name, '_', '-');
    EXPECT_EQ(Name(findings[0].id), name);
    EXPECT_EQ(findings[0].subject, "http://b:1 rank 0");
    EXPECT_THAT(findings[0].evidence[0], HasSubstr("64 requests and no event"));
    EXPECT_THAT(findings[0].evidence[1], HasSubstr("51200"));
    EXPECT_EQ(findings[0].fixes[0].what, "Turn it on");
    EXPECT_GT(findings[0].fixes.size(), 1u) << cause;
  }
}

TEST(RouterDiagnosis, AdvisesToUnsetASizeOnlyWhereOneIsSet) {
  RouterLook router = HealthyRouter();
  RoutedRank& rank = router.workers[1].ranks[0];
  rank.trust = "doubted";
  rank.cause = "block_size_mismatch";
  rank.fix =
      "configure --block-size 16 on this worker, or start the router with "
      "--block-size-conflict=mixed";
  const Finding finding = FindingsOf(router)[0];
  for (const Fix& fix : finding.fixes) {
    EXPECT_THAT(fix.what, testing::Not(HasSubstr("Remove the block size")));
  }
}

TEST(RouterDiagnosis, TellsARefusedWorkerFromOneThatDoesNotAnswer) {
  RouterLook router = HealthyRouter();
  router.workers[0].state = "unhealthy";
  EXPECT_EQ(FindingsOf(router)[0].id, FindingId::kUnhealthy);
  router.workers[0].state = "excluded";
  router.workers[0].cause = "block_size_conflict";
  EXPECT_EQ(FindingsOf(router)[0].id, FindingId::kBlockSizeConflict);
}

TEST(RouterDiagnosis, FindsAModeThatLooksAtNoCache) {
  RouterLook router = HealthyRouter();
  router.mode = "round-robin";
  EXPECT_EQ(FindingsOf(router)[0].id, FindingId::kRouterModeMissing);
  EXPECT_THAT(FindingsOf(router)[0].fixes[0].setting, HasSubstr("--router-mode kv"));
}

TEST(RouterDiagnosis, FindsARouterThatOnlyGuesses) {
  RouterLook router = HealthyRouter();
  router.mode = "kv";
  router.kv_events = false;
  EXPECT_EQ(FindingsOf(router)[0].id, FindingId::kKvEventsUnused);
}

TEST(RouterDiagnosis, FindsHitsThatTheRouterDidNotSeeComing) {
  RouterLook router = HealthyRouter();
  router.counters.actual_tokens = 50'000;
  router.counters.predicted_tokens = 45'000;
  EXPECT_THAT(FindingsOf(router), IsEmpty());
  router.counters.predicted_tokens = 1'000;
  ASSERT_THAT(FindingsOf(router), SizeIs(1));
  EXPECT_EQ(FindingsOf(router)[0].id, FindingId::kIndexEmpty);
  EXPECT_EQ(FindingsOf(router)[0].severity, Severity::kWarning);
  EXPECT_NEAR(FindingsOf(router)[0].gain, 0.98, 1e-9);
}

TEST(RouterDiagnosis, WeighsWasteByItsShareAndItsCauses) {
  RouterLook router = HealthyRouter();
  router.counters.prompt_tokens = 100'000;
  router.counters.wasted = {{"evicted", 20'000}, {"load", 5'000}, {"gone", 0}};
  const auto findings = FindingsOf(router);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, FindingId::kWastedPrefill);
  EXPECT_DOUBLE_EQ(findings[0].gain, 0.25);
  ASSERT_THAT(findings[0].evidence, SizeIs(2));
  EXPECT_THAT(findings[0].evidence[0], HasSubstr("evicted"));
  EXPECT_THAT(findings[0].fixes[0].what, HasSubstr("more memory"));
  router.counters.wasted = {{"evicted", 400}};
  EXPECT_THAT(FindingsOf(router), IsEmpty());
}

TEST(WorkerDiagnosis, SaysNothingOfAHealthyEngine) {
  EXPECT_THAT(FindingsOf(HealthyWorker()), IsEmpty());
}

TEST(WorkerDiagnosis, FindsWhatAnEngineSaysOfItself) {
  LookedAtWorker off = HealthyWorker();
  off.look.events.how = PublishedEvents::How::kOff;
  off.look.events.sources.clear();
  off.streams.clear();
  EXPECT_EQ(FindingsOf(off)[0].id, FindingId::kPublisherOff);

  off.look.events.unlisted = true;  // /kv_event_sources answers {}
  const Finding unlisted = FindingsOf(off)[0];
  EXPECT_EQ(unlisted.id, FindingId::kNoEvents);
  EXPECT_EQ(unlisted.severity, Severity::kError);
  for (const char* part : {"\"publisher\"", "\"endpoint\"", "\"replay_endpoint\""}) {
    EXPECT_THAT(unlisted.fixes[0].setting, HasSubstr(part));
  }

  LookedAtWorker uncached = HealthyWorker();
  uncached.look.report.prefix_caching = false;
  EXPECT_EQ(FindingsOf(uncached)[0].id, FindingId::kPrefixCachingOff);

  LookedAtWorker dialling = HealthyWorker();
  dialling.look.events.sources[0].dials_out = true;
  EXPECT_EQ(FindingsOf(dialling)[0].id, FindingId::kEndpointConnects);

  LookedAtWorker forgetful = HealthyWorker();
  forgetful.look.events.sources[0].replay.clear();
  EXPECT_EQ(FindingsOf(forgetful)[0].id, FindingId::kReplayMissing);

  LookedAtWorker fine = HealthyWorker();
  fine.look.report.block_size = 1;
  EXPECT_EQ(FindingsOf(fine)[0].id, FindingId::kPageSizeOne);
}

TEST(WorkerDiagnosis, FindsWhatItsStreamShows) {
  LookedAtWorker deaf = HealthyWorker();
  deaf.streams[0].connected = false;
  EXPECT_EQ(FindingsOf(deaf)[0].id, FindingId::kNoEvents);

  LookedAtWorker silent = HealthyWorker();
  silent.streams[0].batches = 0;
  EXPECT_THAT(FindingsOf(silent), IsEmpty());  // it may have had nothing to do
  silent.meanwhile = EngineCounts{};
  silent.meanwhile->prompt_tokens = 5000;
  EXPECT_EQ(FindingsOf(silent)[0].id, FindingId::kNoEvents);

  LookedAtWorker torn = HealthyWorker();
  torn.streams[0].gaps = 2;
  torn.streams[0].missing_batches = 7;
  EXPECT_EQ(FindingsOf(torn)[0].id, FindingId::kEventGap);

  LookedAtWorker churning = HealthyWorker();
  churning.streams[0].stored_blocks = 100;
  churning.streams[0].removed_blocks = 150;
  EXPECT_THAT(FindingsOf(churning), IsEmpty());
  churning.streams[0].removed_blocks = 900;
  EXPECT_EQ(FindingsOf(churning)[0].id, FindingId::kChurn);
  EXPECT_THAT(FindingsOf(churning)[0].message, HasSubstr("9 to 1"));

  LookedAtWorker late = HealthyWorker();
  late.streams[0].median_lag = 4.5;
  EXPECT_EQ(FindingsOf(late)[0].id, FindingId::kEventLag);
}

TEST(WorkerDiagnosis, ShowsTheFirstTokenThatDiffers) {
  LookedAtWorker worker = HealthyWorker();
  worker.tokens.emplace();
  worker.tokens->comparisons = {{.name = "a chat",
                                 .asked = true,
                                 .equal = false,
                                 .ours = 12,
                                 .theirs = 13,
                                 .position = 0,
                                 .our_id = 5,
                                 .their_id = 1,
                                 .our_piece = "Hello",
                                 .their_piece = "<s>",
                                 .only_bos = true}};
  const auto findings = FindingsOf(worker);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, FindingId::kTokensDiffer);
  EXPECT_THAT(findings[0].evidence[0], HasSubstr("at position 0 5 'Hello' here, 1 '<s>' there"));
}

}  // namespace
}  // namespace fathom
