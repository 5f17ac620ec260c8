#include "router/gateway/prompt_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "testing/becomes.h"
#include "testing/gate.h"
#include "testing/loop_thread.h"
#include "testing/model_fixture.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Returns a token for every message of a chat and every byte of a text; or fails, or waits.
class FakeSource final : public TokenSource {
 public:
  Task<TokenAnswer> Tokenize(const TokenQuestion& question, TimePoint) override {
    ++asked;
    last = std::string(question.parts.prompt) + std::string(question.parts.messages);
    models.emplace_back(question.model);
    co_await gate;
    if (failure) co_return std::unexpected(*failure);
    // Read only now: the text must still be valid.
    if (by_byte) co_return std::vector<TokenId>(last.begin(), last.end());
    const size_t count = question.parts.prompt.size() + question.parts.messages.size();
    co_return std::vector<TokenId>(count, question.parts.prompt.empty() ? 1 : 2);
  }

  void Miss(std::string_view model, TokenFailure reason, TimePoint) override {
    missed.emplace_back(model, reason);
  }

  int asked = 0;
  std::vector<std::pair<std::string, TokenFailure>> missed;
  std::string last;
  std::vector<std::string> models;
  std::optional<TokenFailure> failure;
  bool by_byte = false;  // each byte is a token
  Gate gate{true};
};

class PromptTokensTest : public testing::Test {
 protected:
  PromptTokensTest() { Make(seconds(20)); }
  ~PromptTokensTest() override {
    thread_.Call([this] { source_->gate.Open(); });
    thread_.Call([this] { reader_.reset(); });
    thread_.Stop();
  }

  void Make(Duration timeout, size_t cache_bytes = 1 << 20) {
    cache_ = std::make_unique<TokenCache>(cache_bytes, metrics_.cache_bytes);
    const TokenizeOptions options{.timeout = timeout, .secret = 1};
    const PromptShelves shelves{models_,     *cache_, prefixes_, side_work_, metrics_,
                                complaints_, memory_, builds_,   nullptr,    &parity_};
    reader_ = std::make_unique<PromptReader>(options, thread_.loop(), source_, shelves);
  }

  PromptTokens Read(const std::string& body, Route route = Route::kCompletions) {
    const auto fields = ReadRequestFields(body);
    return thread_.Complete([&] { return reader_->Read(*fields, route, fleet_.Current()); });
  }
  PromptTokens Chat(const std::string& messages) {
    return Read(R"({"model":"m","messages":)" + messages + "}", Route::kChat);
  }

  // Does not wait for the task's end.
  PromptTokens& Start(const std::string& body) {
    PromptTokens& out = started_.emplace_back();
    thread_.Call([&] { Spawn(ReadInto(*reader_, body, fleet_.Current(), out, done_)); });
    return out;
  }
  static Task<void> ReadInto(PromptReader& reader, std::string body,
                             std::shared_ptr<const FleetSnapshot> fleet, PromptTokens& out,
                             std::atomic<int>& done) {
    const auto fields = ReadRequestFields(body);
    auto reading = reader.Read(*fields, Route::kCompletions, std::move(fleet));
    out = co_await reading;
    ++done;
  }

  uint64_t Count(TokensFrom from) { return metrics_.From(from).Value(); }
  uint64_t Count(TokenFailure failure) { return metrics_.Failures(failure).Value(); }

  Registry registry_;
  TokenizeMetrics metrics_{registry_};
  Fleet fleet_{BreakerOptions{}};
  LoopThread thread_;
  std::shared_ptr<FakeSource> source_ = std::make_shared<FakeSource>();
  std::unique_ptr<TokenCache> cache_;
  ModelLibrary models_;
  ParityBoard parity_;
  PrefixCache prefixes_{0, 0, metrics_.prefix_bytes};
  SideWork side_work_{0};
  Log log_{2, LogLevel::kOff};
  TokenComplaints complaints_{log_};
  TokenizerBuilds builds_{log_};
  static constexpr uint64_t kMemory = uint64_t{1} << 30;
  RequestMemory memory_{kMemory};
  std::unique_ptr<PromptReader> reader_;
  std::atomic<int> done_{0};
  std::deque<PromptTokens> started_;
};

TEST_F(PromptTokensTest, AreTheIdsThatTheClientSentAndNobodyIsAsked) {
  const PromptTokens prompt = Read(R"({"prompt":[5, 6,7]})");
  EXPECT_THAT(prompt.tokens, ElementsAre(5, 6, 7));
  EXPECT_EQ(prompt.from, TokensFrom::kIds);
  EXPECT_EQ(prompt.prompt_tokens, 3u);
  EXPECT_EQ(prompt.seed, kKeySeed);
  EXPECT_EQ(source_->asked, 0);
  EXPECT_EQ(Count(TokensFrom::kIds), 1u);
}

TEST_F(PromptTokensTest, StayApartWhileSeveralAreHeld) {
  const PromptTokens first = Read(R"({"prompt":[1,2]})");
  {
    const PromptTokens second = Read(R"({"prompt":[3]})");
    EXPECT_THAT(second.tokens, ElementsAre(3));
  }
  const PromptTokens third = Read(R"({"prompt":[4,5,6]})");
  EXPECT_THAT(first.tokens, ElementsAre(1, 2));
  EXPECT_THAT(third.tokens, ElementsAre(4, 5, 6));
}

TEST_F(PromptTokensTest, OfSeveralPromptsAreThoseOfTheFirst) {
  EXPECT_THAT(Read(R"({"prompt":[[1,2],[3]]})").tokens, ElementsAre(1, 2));
  const PromptTokens text = Read(R"({"prompt":["ab","c"]})");
  EXPECT_EQ(text.from, TokensFrom::kEngine);
  EXPECT_EQ(source_->last, R"("ab")");
}

TEST_F(PromptTokensTest, AreNotKnownWhereThePromptIsNone) {
  for (const char* body :
       {"{}", R"({"prompt":null})", R"({"prompt":7})", R"({"prompt":{}})", R"({"prompt":[1,-2]})",
        R"({"prompt":[1,"a"]})", R"({"prompt":[4294967296]})", R"({"prompt":[[[1]]]})"}) {
    const PromptTokens prompt = Read(body);
    EXPECT_EQ(prompt.from, TokensFrom::kNone) << body;
    EXPECT_THAT(prompt.tokens, IsEmpty()) << body;
  }
  for (const char* body :
       {"{}", R"({"messages":"hi"})", R"({"messages":{}})", R"({"prompt":[1]})"}) {
    EXPECT_EQ(Read(body, Route::kChat).from, TokensFrom::kNone) << body;
  }
  EXPECT_EQ(source_->asked, 0);
  EXPECT_EQ(Count(TokensFrom::kNone), 12u);
}

TEST_F(PromptTokensTest, OfTheEnginesOwnRoutesAreReadAsThoseOfCompletions) {
  for (const char* body : {R"({"input_ids":[1,2]})", R"({"input_ids":[[1,2],[3]]})"}) {
    const PromptTokens prompt = Read(body, Route::kGenerate);
    EXPECT_THAT(prompt.tokens, ElementsAre(1, 2)) << body;
    EXPECT_EQ(prompt.from, TokensFrom::kIds);
    EXPECT_EQ(prompt.kind, PromptKind::kIds);
  }
  EXPECT_THAT(Read(R"({"token_ids":[4,5]})", Route::kInferenceGenerate).tokens, ElementsAre(4, 5));
  EXPECT_EQ(Read(R"({"text":"a"})", Route::kGenerate).from, TokensFrom::kEngine);
  EXPECT_EQ(Read(R"({"text":["a","b"]})", Route::kGenerate).from, TokensFrom::kCache);
  EXPECT_EQ(Read(R"({"prompt":"a"})").from, TokensFrom::kCache) << "the same text";
  EXPECT_EQ(Read(R"({"prompt":[1],"token_ids":[2]})", Route::kGenerate).from, TokensFrom::kNone);
}

TEST_F(PromptTokensTest, OfARequestWithoutAModelAreThoseOfTheOneThatIsServed) {
  WorkerSpec spec;
  spec.url = "http://a:1";
  const WorkerId id = (*fleet_.Add(spec))->id();
  fleet_.SetModels(id, {.models = {"served"}});
  fleet_.SetHealthy(id);
  EXPECT_EQ(Read(R"({"text":"a"})", Route::kGenerate).from, TokensFrom::kEngine);
  EXPECT_THAT(source_->models, ElementsAre("served"));
  EXPECT_EQ(Read(R"({"text":"a","model":"served"})", Route::kGenerate).from, TokensFrom::kCache);
}

TEST_F(PromptTokensTest, OfTheEnginesOwnRoutesAreNotKnownWithMedia) {
  for (const char* body :
       {R"({"text":"<image>","image_data":"x"})", R"({"input_ids":[1],"audio_data":["x"]})"}) {
    const PromptTokens prompt = Read(body, Route::kGenerate);
    EXPECT_EQ(prompt.from, TokensFrom::kNone) << body;
    EXPECT_EQ(prompt.unread, UnreadReason::kMedia) << body;
  }
  EXPECT_EQ(Read(R"({"token_ids":[1],"features":{}})", Route::kInferenceGenerate).unread,
            UnreadReason::kMedia);
  EXPECT_EQ(Read(R"({"input_ids":[1],"image_data":null})", Route::kGenerate).from,
            TokensFrom::kIds);
  EXPECT_EQ(Read(R"({"prompt":[1],"features":"mine"})").from, TokensFrom::kIds);
}

TEST_F(PromptTokensTest, OfAnAdapterAreInANamespaceOfTheirOwn) {
  const uint64_t plain = Read(R"({"input_ids":[1]})", Route::kGenerate).seed;
  EXPECT_NE(Read(R"({"input_ids":[1],"lora_path":"a"})", Route::kGenerate).seed, plain);
  EXPECT_EQ(Read(R"({"input_ids":[1],"lora_path":null})", Route::kGenerate).seed, plain);
}

TEST_F(PromptTokensTest, AreNotLookedForOnOtherRoutes) {
  for (const Route route :
       {Route::kEmbeddings, Route::kCountTokens, Route::kRerank, Route::kScore, Route::kOther}) {
    EXPECT_EQ(Read(R"({"prompt":[1],"messages":["a"]})", route).from, TokensFrom::kNone);
  }
  EXPECT_EQ(source_->asked, 0);
  EXPECT_EQ(Count(TokensFrom::kNone), 0u) << "and not missed";
}

TEST_F(PromptTokensTest, OfAgentsComeFromTheSourceAndThenFromTheCache) {
  const std::string messages =
      R"({"model":"m","system":"s","messages":[{"role":"user","content":"a"}]})";
  EXPECT_EQ(Read(messages, Route::kMessages).from, TokensFrom::kEngine);
  EXPECT_EQ(Read(messages, Route::kMessages).from, TokensFrom::kCache);
  EXPECT_EQ(Read(messages, Route::kMessages).kind, PromptKind::kMessages);
  EXPECT_EQ(Read(messages, Route::kChat).from, TokensFrom::kEngine) << "another API, other tokens";
  const std::string response = R"({"model":"m","input":"a","instructions":"s"})";
  EXPECT_EQ(Read(response, Route::kResponses).from, TokensFrom::kEngine);
  EXPECT_EQ(Read(response, Route::kResponses).from, TokensFrom::kCache);
  EXPECT_EQ(Read(response, Route::kResponses).kind, PromptKind::kResponses);
  EXPECT_EQ(Read(R"({"model":"m","input":5})", Route::kResponses).from, TokensFrom::kNone);
}

TEST_F(PromptTokensTest, OfATextComeFromTheSourceAndThenFromTheCache) {
  const PromptTokens first = Read(R"({"model":"m","prompt":"hello"})");
  EXPECT_EQ(first.from, TokensFrom::kEngine);
  EXPECT_EQ(first.tokens.size(), 7u);
  EXPECT_EQ(first.prompt_tokens, 7u);
  EXPECT_THAT(source_->models, ElementsAre("m"));
  const PromptTokens second = Read(R"({"model":"m","prompt":"hello"})");
  EXPECT_EQ(second.from, TokensFrom::kCache);
  EXPECT_EQ(second.tokens.data(), first.tokens.data());
  EXPECT_EQ(source_->asked, 1);
  EXPECT_EQ(Read(R"({"model":"n","prompt":"hello"})").from, TokensFrom::kEngine);
  EXPECT_EQ(Read(R"({"model":"m","prompt":"hello","add_special_tokens":false})").from,
            TokensFrom::kEngine);
  EXPECT_GT(metrics_.cache_bytes.Value(), 0);
  EXPECT_EQ(metrics_.duration.Snapshot().count(), 3u);
}

TEST_F(PromptTokensTest, OfAChatComeFromTheSourceAndThenFromTheCache) {
  EXPECT_EQ(Chat(R"([{"role":"user","content":"a"}])").from, TokensFrom::kEngine);
  EXPECT_EQ(Chat(R"([ {"role":"user","content":"a"} ])").from, TokensFrom::kCache);
  EXPECT_EQ(
      Read(R"({"model":"m","tools":[1],"messages":[{"role":"user","content":"a"}]})", Route::kChat)
          .from,
      TokensFrom::kEngine);
  EXPECT_EQ(source_->asked, 2);
}

TEST_F(PromptTokensTest, AreNotKeptWhereTheCacheIsOff) {
  Make(seconds(20), 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Read(R"({"prompt":"a"})").from, TokensFrom::kEngine);
}

TEST_F(PromptTokensTest, AreNotAskedForWithoutTime) {
  Make(Duration::zero());
  const PromptTokens prompt = Read(R"({"prompt":"twelve bytes"})");
  EXPECT_EQ(prompt.from, TokensFrom::kNone);
  EXPECT_EQ(prompt.prompt_tokens, 3u) << "a guess";
  EXPECT_EQ(source_->asked, 0);
  EXPECT_THAT(Read(R"({"prompt":[1]})").tokens, ElementsAre(1)) << "ids cost no time";
}

TEST_F(PromptTokensTest, AreNotGuessedToBeMoreThanAnImageHas) {
  Make(Duration::zero());
  const std::string image(2'000'000, 'A');
  const std::string chat = R"([{"role":"user","content":[{"image_url":")" + image + R"("}]}])";
  EXPECT_EQ(Chat(chat).prompt_tokens, PromptReader::kMostGuessed);
  EXPECT_EQ(Read(R"({"prompt":")" + image + "\"}").prompt_tokens, PromptReader::kMostGuessed);
}

TEST_F(PromptTokensTest, AreAsManyAsThereAreWhereTheyAreKnown) {
  const std::string text(4 * PromptReader::kMostGuessed, 'A');
  EXPECT_EQ(Read(R"({"prompt":")" + text + "\"}").prompt_tokens, text.size() + 2);
}

TEST_F(PromptTokensTest, LieInTheNamespaceOfSaltAndAdapter) {
  WorkerSpec spec;
  spec.url = "http://a:1";
  const WorkerId id = (*fleet_.Add(spec))->id();
  fleet_.SetModels(id, {.models = {"base", "tuned"},
                        .cards = {"{}", "{}"},
                        .any_model = false,
                        .adapters = {"tuned"}});
  EXPECT_EQ(Read(R"({"model":"base","prompt":[1]})").seed, kKeySeed);
  EXPECT_EQ(Read(R"({"model":"tuned","prompt":[1]})").seed, NamespaceSeed("tuned", ""));
  EXPECT_EQ(Read(R"({"model":"base","prompt":[1],"cache_salt":"t\u0065n"})").seed,
            NamespaceSeed("", "ten"));
  EXPECT_EQ(Read(R"({"model":"tuned","prompt":[1],"cache_salt":"ten"})").seed,
            NamespaceSeed("tuned", "ten"));
  for (const char* none : {"null", "\"\"", "7", "[]"}) {
    EXPECT_EQ(Read(std::string(R"({"model":"base","prompt":[1],"cache_salt":)") + none + "}").seed,
              kKeySeed)
        << none;
  }
}

TEST_F(PromptTokensTest, ThatComeTooLateAreThereTheNextTime) {
  Make(milliseconds(5));
  thread_.Call([this] { source_->gate.Shut(); });
  const PromptTokens late = Read(R"({"prompt":"twelve bytes"})");
  EXPECT_EQ(late.from, TokensFrom::kNone);
  EXPECT_THAT(late.tokens, IsEmpty());
  EXPECT_EQ(late.prompt_tokens, 3u);
  EXPECT_EQ(Count(TokenFailure::kTimeout), 1u);
  EXPECT_EQ(Count(TokensFrom::kNone), 1u);
  EXPECT_EQ(Read(R"({"prompt":"twelve bytes"})").from, TokensFrom::kNone);
  EXPECT_EQ(source_->asked, 1) << "the question is still open";
  thread_.Call([this] { source_->gate.Open(); });
  EXPECT_EQ(Read(R"({"prompt":"twelve bytes"})").from, TokensFrom::kCache);
  EXPECT_EQ(source_->asked, 1);
}

TEST_F(PromptTokensTest, AreAskedForOnceHoweverManyRequestsWantThem) {
  thread_.Call([this] { source_->gate.Shut(); });
  for (int i = 0; i < 50; ++i) Start(R"({"prompt":"same"})");
  Start(R"({"prompt":"other"})");
  EXPECT_EQ(done_, 0);
  EXPECT_EQ(source_->asked, 2);
  thread_.Call([this] { source_->gate.Open(); });
  EXPECT_EQ(done_, 51);
  for (const PromptTokens& prompt : started_) EXPECT_EQ(prompt.from, TokensFrom::kEngine);
  EXPECT_EQ(started_.front().tokens.size(), 6u);
  EXPECT_EQ(started_.back().tokens.size(), 7u);
}

TEST_F(PromptTokensTest, AreGivenUpByEachRequestForItself) {
  Make(milliseconds(20));
  thread_.Call([this] { source_->gate.Shut(); });
  for (int i = 0; i < 10; ++i) Start(R"({"prompt":"same"})");
  EXPECT_TRUE(Becomes([this] { return done_ == 10; }));
  EXPECT_EQ(Count(TokenFailure::kTimeout), 10u);
  thread_.Call([this] { source_->gate.Open(); });
  EXPECT_EQ(Read(R"({"prompt":"same"})").from, TokensFrom::kCache);
}

TEST_F(PromptTokensTest, OfAnEarlierTurnAreUsedWhereTheAnswerDoesNotCome) {
  const std::string turn = R"({"role":"user","content":"a first message"})";
  const PromptTokens first = Chat("[" + turn + "]");
  ASSERT_EQ(first.from, TokensFrom::kEngine);
  source_->failure = TokenFailure::kError;
  const PromptTokens next = Chat("[" + turn + R"(,{"role":"assistant","content":"x"},"y"])");
  EXPECT_EQ(next.from, TokensFrom::kEnginePart);
  EXPECT_EQ(next.tokens.size(), first.tokens.size() - 16) << "its end is not certain";
  EXPECT_EQ(next.tokens.data(), first.tokens.data());
  EXPECT_GE(next.prompt_tokens, first.tokens.size());
  EXPECT_EQ(Count(TokensFrom::kEnginePart), 1u);
  EXPECT_EQ(Count(TokenFailure::kError), 1u);
  EXPECT_EQ(Chat(R"(["another conversation"])").from, TokensFrom::kNone);
}

TEST_F(PromptTokensTest, OfTheLatestTurnAreUsedWhereThereAreSeveral) {
  const std::string a = R"({"role":"user","content":"a first message"})";
  const std::string b = R"({"role":"user","content":"another"})";
  Chat("[" + a + "]");
  const PromptTokens longer = Chat("[" + a + "," + b + "]");
  source_->failure = TokenFailure::kTimeout;
  const PromptTokens next = Chat("[" + a + "," + b + "," + b + "]");
  EXPECT_EQ(next.from, TokensFrom::kEnginePart);
  EXPECT_EQ(next.tokens.data(), longer.tokens.data());
}

TEST_F(PromptTokensTest, OfATurnThatIsAllUncertainAreNotUsed) {
  Chat(R"(["hi"])");
  source_->failure = TokenFailure::kError;
  EXPECT_EQ(Chat(R"(["hi","you"])").from, TokensFrom::kNone);
}

TEST_F(PromptTokensTest, ThatCouldNotBeHadAreCountedByReasonAndTheSourceIsTold) {
  for (const TokenFailure failure :
       {TokenFailure::kRefused, TokenFailure::kUnsupported, TokenFailure::kError}) {
    source_->failure = failure;
    EXPECT_EQ(Read(R"({"model":"m","prompt":"a"})").from, TokensFrom::kNone);
    EXPECT_EQ(Count(failure), 1u) << Name(failure);
    EXPECT_EQ(source_->missed.back(), std::pair(std::string("m"), failure));
  }
  EXPECT_EQ(source_->asked, 3) << "failures are not kept";
}

TEST_F(PromptTokensTest, AreNotAskedForWhenTooManyQuestionsAreOpen) {
  thread_.Call([this] { source_->gate.Shut(); });
  for (size_t i = 0; i < TokenDesk::kMaxOpen; ++i) {
    Start(R"({"prompt":"number )" + std::to_string(i) + "\"}");
  }
  EXPECT_EQ(Read(R"({"prompt":"one more"})").from, TokensFrom::kNone);
  EXPECT_EQ(Count(TokenFailure::kOverload), 1u);
  thread_.Call([this] { source_->gate.Open(); });
  EXPECT_EQ(Read(R"({"prompt":"one more"})").from, TokensFrom::kEngine);
}

TEST_F(PromptTokensTest, AreNotAskedForWhenTheTextsInFlightAreTooLong) {
  const std::string half(TokenDesk::kMaxBytes / 2 + 100, 'x');
  thread_.Call([this] { source_->gate.Shut(); });
  Start("{\"prompt\":\"a" + half + "\"}");
  EXPECT_EQ(Read("{\"prompt\":\"b" + half + "\"}").from, TokensFrom::kNone);
  EXPECT_EQ(Count(TokenFailure::kOverload), 1u);
  thread_.Call([this] { source_->gate.Open(); });
  EXPECT_EQ(Read("{\"prompt\":\"b" + half + "\"}").from, TokensFrom::kEngine);
}

TEST_F(PromptTokensTest, MayComeWhenTheReaderIsGone) {
  Make(milliseconds(5));
  thread_.Call([this] { source_->gate.Shut(); });
  EXPECT_EQ(Read(R"({"prompt":"late"})").from, TokensFrom::kNone);
  thread_.Call([this] { reader_.reset(); });
  thread_.Call([this] { source_->gate.Open(); });
  EXPECT_GT(metrics_.cache_bytes.Value(), 0);
}

// With the model's files

class PromptTokensWithFiles : public PromptTokensTest {
 protected:
  PromptTokensWithFiles() {
    models_ = ModelLibrary::Of(SmallModel());
    Make(seconds(20));
  }
};

TEST_F(PromptTokensWithFiles, AreReadInThisProcess) {
  const PromptTokens chat = Chat(R"([{"role":"user","content":"hello"}])");
  EXPECT_EQ(chat.from, TokensFrom::kFiles);
  EXPECT_THAT(chat.tokens, testing::Contains(kHello));
  EXPECT_EQ(chat.prompt_tokens, chat.tokens.size());
  EXPECT_EQ(Read(R"({"prompt":"hello"})").from, TokensFrom::kFiles);
  EXPECT_EQ(source_->asked, 0);
}

TEST_F(PromptTokensTest, ComeFromFilesThatWereFoundOnlyIfTheEngineAgrees) {
  const auto from = [&](ParityVerdict verdict) {
    ParityVerdicts verdicts;
    verdicts.fill(verdict);
    parity_.Publish(WorkerId(1), "m", verdicts);
    return Chat(R"([{"role":"user","content":"hello"}])").from;
  };
  EXPECT_EQ(from(ParityVerdict::kAgrees), TokensFrom::kEngine) << "there are no files yet";
  models_.Put("m", {.model = SmallModel(), .origin = FilesOrigin::kFound});
  EXPECT_EQ(from(ParityVerdict::kAgrees), TokensFrom::kFiles);
  EXPECT_EQ(from(ParityVerdict::kCannotAsk), TokensFrom::kFiles);
  EXPECT_EQ(from(ParityVerdict::kUnknown), TokensFrom::kCache);
  EXPECT_EQ(from(ParityVerdict::kDiffers), TokensFrom::kCache);
}

TEST_F(PromptTokensWithFiles, SayWhyTheyAreNotAllOfThem) {
  const PromptTokens chat = Chat(
      R"([{"role":"user","content":"hello"},{"role":"user","content":[{"type":"input_audio"}]}])");
  EXPECT_EQ(chat.from, TokensFrom::kFilesPart);
  EXPECT_EQ(chat.inexact, Inexact::kAudio);
  EXPECT_EQ(metrics_.InexactFor(Inexact::kAudio).Value(), 1u);
  EXPECT_EQ(source_->asked, 0);
}

TEST_F(PromptTokensWithFiles, AreNotKnownWhereTheEngineLeavesSomeOut) {
  const PromptTokens prompt = Read(R"({"prompt":"hello","truncate_prompt_tokens":1})");
  EXPECT_EQ(prompt.from, TokensFrom::kNone);
  EXPECT_EQ(prompt.inexact, Inexact::kTruncated);
  EXPECT_TRUE(prompt.tokens.empty());
}

TEST_F(PromptTokensWithFiles, AreAskedForWhereARequestHasItsOwnTemplate) {
  const PromptTokens chat =
      Read(R"({"messages":[{"role":"user","content":"a"}],"chat_template":"x"})", Route::kChat);
  EXPECT_EQ(chat.from, TokensFrom::kEngine);
  EXPECT_EQ(chat.inexact, Inexact::kOwnTemplate);
}

TEST_F(PromptTokensTest, ReadsNoMorePromptsThanThereIsMemoryFor) {
  const std::string body =
      R"({"model":"m","prompt":[1, 2)" + std::string(size_t{100} << 10, ' ') + "]}";
  {
    const PromptTokens first = Read(body);
    EXPECT_EQ(first.tokens.size(), 2u);
    EXPECT_EQ(memory_.used(), 2 * sizeof(TokenId));  // what it turned out to be
  }
  EXPECT_EQ(memory_.used(), 0u);
  ASSERT_TRUE(memory_.TryTake(kMemory - body.size()));  // others hold it
  const PromptTokens second = Read(body);
  EXPECT_TRUE(second.tokens.empty());
  EXPECT_EQ(second.from, TokensFrom::kNone);
  EXPECT_EQ(Count(TokenFailure::kOverload), 1u);
  EXPECT_EQ(Read(R"({"model":"m","prompt":[1, 2]})").tokens.size(), 2u);
}

// A new conversation with a system prompt that others have too.
TEST_F(PromptTokensTest, KnowsTheBeginningThatConversationsHaveInCommon) {
  source_->by_byte = true;
  const std::string system = R"({"role":"system","content":"You answer questions about boats."})";
  const auto turn = [&](const std::string& text) {
    return "[" + system + R"(,{"role":"user","content":")" + text + R"("}])";
  };
  Chat(turn("How deep is a keel?"));
  source_->failure = TokenFailure::kTimeout;
  EXPECT_THAT(Chat(turn("What is a mast?")).tokens, IsEmpty()) << "one conversation shows nothing";
  source_->failure.reset();
  Chat(turn("Why does it float?"));
  source_->failure = TokenFailure::kTimeout;
  const PromptTokens prompt = Chat(turn("Which is the fastest?"));
  EXPECT_EQ(prompt.from, TokensFrom::kEnginePart);
  const std::string known(prompt.tokens.begin(), prompt.tokens.end());
  EXPECT_GT(known.size(), system.size() - 20);
  EXPECT_TRUE(turn("Which is the fastest?").starts_with(known)) << known;
  EXPECT_THAT(Chat(R"([{"role":"system","content":"Other"},{"role":"user","content":"x"}])").tokens,
              IsEmpty());
}

// A prompt whose prefill takes longer than the timeout is waited for longer.
TEST_F(PromptTokensTest, WaitsLongerForTokensThatAreWorthMore) {
  Make(milliseconds(20));
  thread_.Call([this] { source_->gate.Shut(); });
  const auto begun = std::chrono::steady_clock::now();
  Read(R"({"model":"m","prompt":"short"})");
  const Duration brief = std::chrono::steady_clock::now() - begun;
  Read(R"({"model":"m","prompt":")" + std::string(40'000, 'x') + R"("})");
  const Duration longer = std::chrono::steady_clock::now() - begun - brief;
  const double work = PrefillWork(10'000, 0);
  EXPECT_GE(longer, Duration(static_cast<int64_t>(work) * Duration(kUsualUnit).count()));
  EXPECT_EQ(Count(TokenFailure::kTimeout), 2u);
}

// No engine tokenizes.
class PromptTokensByText : public PromptTokensTest {
 protected:
  PromptTokensByText() {
    source_->failure = TokenFailure::kUnsupported;
    Make(seconds(20));
  }
  void Make(Duration timeout) {
    cache_ = std::make_unique<TokenCache>(1 << 20, metrics_.cache_bytes);
    const TokenizeOptions options{.timeout = timeout, .secret = 1, .by_text = true};
    const PromptShelves shelves{models_,     *cache_, prefixes_, side_work_, metrics_,
                                complaints_, memory_, builds_,   &watch_};
    reader_ = std::make_unique<PromptReader>(options, thread_.loop(), source_, shelves);
  }

  PromptWatch watch_{registry_, log_};
  const std::string kWords = std::string(2000, 'w');
};

TEST_F(PromptTokensByText, AreNotMissedIfThereIsNoPrefixToLose) {
  const PromptTokens prompt = Read(R"({"model":"m","prompt":"h"})");
  EXPECT_EQ(prompt.from, TokensFrom::kNone);
  EXPECT_FALSE(prompt.unread);
}

TEST_F(PromptTokensByText, AreValuesOfTheTextInANamespaceOfTheirOwn) {
  const PromptTokens prompt = Read(R"({"model":"m","prompt":")" + kWords + "\"}");
  EXPECT_EQ(prompt.from, TokensFrom::kText);
  EXPECT_EQ(prompt.unread, UnreadReason::kNoTokenizer);
  EXPECT_EQ(prompt.tokens.size(), 500u);
  EXPECT_EQ(prompt.prompt_tokens, 500u);
  EXPECT_NE(prompt.seed, kKeySeed);
  EXPECT_EQ(prompt.text.data(), prompt.tokens.data());
  EXPECT_EQ(Count(TokensFrom::kText), 1u);
  EXPECT_EQ(Count(TokensFrom::kNone), 0u);
  const PromptTokens other = Read(R"({"model":"n","prompt":")" + kWords + "\"}");
  EXPECT_NE(other.seed, prompt.seed) << "another model";
  const PromptTokens salted = Read(R"({"model":"m","cache_salt":"s","prompt":")" + kWords + "\"}");
  EXPECT_NE(salted.seed, prompt.seed) << "another salt";
}

TEST_F(PromptTokensByText, AreNotKnownWhereTheTextTellsNothing) {
  EXPECT_EQ(Read(R"({"prompt":")" + kWords + R"(","truncate_prompt_tokens":9})").unread,
            UnreadReason::kTruncated);
  const std::string continued = R"({"input":")" + kWords + R"(","previous_response_id":"r"})";
  EXPECT_EQ(Read(continued, Route::kResponses).unread, UnreadReason::kContinued);
  EXPECT_EQ(Chat(R"([{"role":"user","content":[{"type":"image_url","image_url":{}}]}])").from,
            TokensFrom::kNone);
}

TEST_F(PromptTokensByText, NeedMemoryLikeOthers) {
  RequestMemory::Share all;
  ASSERT_TRUE(all.TryTake(memory_, kMemory - 100));
  EXPECT_EQ(Read(R"({"prompt":")" + kWords + "\"}").unread, UnreadReason::kOverload);
  all.ShrinkTo(kMemory - 5000);
  EXPECT_EQ(Read(R"({"prompt":")" + kWords + "\"}").from, TokensFrom::kText)
      << "it needs less than the tokens";
}

TEST_F(PromptTokensByText, AreReadBesideTokensOnlyWhereOthersHaveNone) {
  source_->failure.reset();
  const std::string body = R"({"model":"m","prompt":")" + kWords + "\"}";
  EXPECT_TRUE(Read(body).text.empty()) << "all prompts of the model are read";
  watch_.Note({.model = "m", .by_text = true}, TimePoint());
  EXPECT_TRUE(watch_.HasByText("m"));
  const PromptTokens prompt = Read(body);
  EXPECT_EQ(prompt.from, TokensFrom::kCache);
  EXPECT_EQ(prompt.text.size(), 500u);
  EXPECT_NE(prompt.text.data(), prompt.tokens.data());
  EXPECT_NE(prompt.text_seed, prompt.seed);
  EXPECT_TRUE(Read(R"({"model":"n","prompt":"words"})").text.empty());
  for (unsigned i = 0; i < PromptWatch::kLast; ++i) watch_.Note({.model = "m"}, TimePoint());
  EXPECT_FALSE(watch_.HasByText("m"));
}

}  // namespace
}  // namespace fathom
