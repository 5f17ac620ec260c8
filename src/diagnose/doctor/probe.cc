#include "diagnose/doctor/probe.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/peer_text.h"
#include "base/random.h"
#include "codec/json.h"
#include "diagnose/doctor/probe_turn.h"
#include "diagnose/doctor/read_only_client.h"
#include "io/client/answer_reader.h"
#include "io/client/conversations.h"
#include "io/http/fetch.h"
#include "metrics/latency_histogram.h"

namespace fathom {
namespace {

constexpr std::string_view kModels = "/v1/models";
constexpr std::string_view kChat = "/v1/chat/completions";

struct Message {
  std::string_view role;
  std::string text;
};

// Turns of one kind, while they are counted.
struct TurnTally {
  LatencyHistogram times;
  ProbeTimes sums;

  void Take(const ProbeTurn& turn);
  ProbeTimes Times() const;
};

void TurnTally::Take(const ProbeTurn& turn) {
  times.Record(turn.first_token - turn.asked);
  ++sums.turns;
  sums.prompt_tokens += turn.prompt_tokens;
  if (turn.cached) ++sums.told;
  sums.cached_tokens += turn.cached.value_or(0);
  if (turn.announced) ++sums.announced;
  sums.announced_tokens += turn.announced.value_or(0);
}

ProbeTimes TurnTally::Times() const {
  ProbeTimes out = sums;
  out.median = times.Percentile(50);
  out.p90 = times.Percentile(90);
  return out;
}

}  // namespace

// One run of the probe.
class Probe {
 public:
  Probe(Loop& loop, Resolver& resolver, const ProbePlan& options)
      : loop_(loop), resolver_(resolver), options_(options), random_(options.seed) {
    report_.model = options.model;
  }

  Task<void> Run();
  ProbeReport Take();

 private:
  struct Level {
    ProbeLevel seen;
    size_t left = 0;  // conversations that nobody has begun
    TurnTally first_turns;
    TurnTally follow_ups;
  };

  Task<Result<void>> ChooseModel();
  void TakeModels(const Json& models);
  Task<void> RunLevel(size_t at_once);
  Task<void> Talk(Level& level);
  Task<bool> Converse(Level& level, std::unique_ptr<ClientConnection>& connection);
  Task<Result<void>> Ask(std::unique_ptr<ClientConnection>& connection, std::string request,
                         ProbeTurn& turn);
  Task<Result<void>> Receive(ClientConnection& connection, ProbeTurn& turn, TimePoint deadline);
  Message NextMessage(bool first);
  std::string BuildRequest(const std::vector<Message>& messages) const;
  std::string KeyHeader() const;

  Loop& loop_;
  Resolver& resolver_;
  const ProbePlan& options_;
  Random random_;
  size_t opening_words_ = ProbePlan::kOpeningWords;
  size_t reply_words_ = ProbePlan::kReplyWords;
  SentRequests sent_;
  ProbeReport report_;
};

std::string Probe::KeyHeader() const {
  return options_.api_key.empty() ? "" : "Bearer " + options_.api_key;
}

Task<void> Probe::Run() {
  auto choosing = ChooseModel();
  const auto chosen = co_await choosing;
  if (!chosen) {
    report_.problem = chosen.error().what;
    co_return;
  }
  for (const size_t at_once : ProbeLevels(options_.most_at_once)) {
    auto running = RunLevel(at_once);
    co_await running;
    const ProbeLevel& level = report_.levels.back();
    if (level.errors == 0) continue;
    report_.problem =
        fmt::format("stopped at {} conversations at once, because {} of {} turns failed: {}",
                    at_once, level.errors, level.requests, level.first_problem);
    co_return;
  }
}

// Also where the model is given: a router that does not answer this gets no load.
Task<Result<void>> Probe::ChooseModel() {
  FetchRequest request;
  request.path = kModels;
  if (!options_.api_key.empty()) request.headers.emplace_back("authorization", KeyHeader());
  sent_.Count("GET", options_.endpoint.url.ToString() + request.path);
  auto asking = Fetch(loop_, resolver_, options_.endpoint, request, loop_.now() + options_.timeout);
  auto answer = co_await asking;
  if (std::string why = WhyNot(answer, "--api-key"); !why.empty()) {
    co_return Fail(Blame::kPeer, "{}: {}", kModels, why);
  }
  if (const auto models = Json::Parse(answer->body)) TakeModels(*models);
  if (report_.model.empty()) {
    co_return Fail(Blame::kPeer, "{} lists no model: name one with --probe-model", kModels);
  }
  co_return Result<void>();
}

// A model with a short context gets shorter conversations.
void Probe::TakeModels(const Json& models) {
  const Json* const data = models.Find("data");
  if (data == nullptr || data->array() == nullptr) return;
  for (const Json& model : *data->array()) {
    const Json* const id = model.Find("id");
    if (id == nullptr || id->string() == nullptr || id->string()->empty()) continue;
    if (report_.model.empty()) report_.model = *id->string();
    if (*id->string() != report_.model) continue;
    const Json* const length = model.Find("max_model_len");
    const uint64_t most = length == nullptr ? 0 : length->unsigned_integer().value_or(0);
    if (most == 0) return;
    opening_words_ = std::clamp<size_t>(most / 4, 1, opening_words_);
    reply_words_ = std::clamp<size_t>(most / 32, 1, reply_words_);
    return;
  }
}

Task<void> Probe::RunLevel(size_t at_once) {
  Level level;
  level.seen.at_once = at_once;
  level.left = std::max(at_once, ProbePlan::kConversations);
  std::vector<Task<void>> people;
  people.reserve(at_once);
  for (size_t i = 0; i < at_once; ++i) people.push_back(Talk(level));
  for (Task<void>& person : people) co_await person;
  level.seen.first_turns = level.first_turns.Times();
  level.seen.follow_ups = level.follow_ups.Times();
  report_.requests += level.seen.requests;
  report_.prompt_tokens +=
      level.seen.first_turns.prompt_tokens + level.seen.follow_ups.prompt_tokens;
  report_.levels.push_back(std::move(level.seen));
}

// One person: conversations until none is left, or one has failed.
Task<void> Probe::Talk(Level& level) {
  std::unique_ptr<ClientConnection> connection;
  while (level.left > 0 && level.seen.errors == 0) {
    --level.left;
    auto conversing = Converse(level, connection);
    const bool whole = co_await conversing;
    if (!whole) co_return;
  }
}

Task<bool> Probe::Converse(Level& level, std::unique_ptr<ClientConnection>& connection) {
  std::vector<Message> messages;
  for (size_t i = 0; i < ProbePlan::kTurns && level.seen.errors == 0; ++i) {
    messages.push_back(NextMessage(i == 0));
    ProbeTurn turn;
    turn.asked = loop_.now();
    ++level.seen.requests;
    auto asking = Ask(connection, BuildRequest(messages), turn);
    const auto asked = co_await asking;
    if (!asked) {
      if (level.seen.errors++ == 0) level.seen.first_problem = asked.error().what;
      co_return false;
    }
    (i == 0 ? level.first_turns : level.follow_ups).Take(turn);
    // Some servers take no message without words.
    messages.push_back({"assistant", turn.text.empty() ? "well" : std::move(turn.text)});
    co_await loop_.Sleep(options_.pause);
  }
  co_return true;
}

Message Probe::NextMessage(bool first) {
  if (!first) return {"user", MakeWords(random_, reply_words_)};
  std::string text = fmt::format("{:016x} ", random_.Next());
  return {"user", text += MakeWords(random_, opening_words_)};
}

std::string Probe::BuildRequest(const std::vector<Message>& messages) const {
  JsonWriter w;
  w.BeginObject().Key("model").String(report_.model).Key("messages").BeginArray();
  for (const Message& message : messages) {
    w.BeginObject().Key("role").String(message.role).Key("content").String(message.text);
    w.EndObject();
  }
  w.EndArray().Key("max_tokens").Unsigned(ProbePlan::kAnswerTokens).Key("stream").Bool(true);
  w.Key("stream_options").BeginObject().Key("include_usage").Bool(true).EndObject().EndObject();
  std::string out;
  AppendRequestHead(out, "POST", options_.endpoint.Called(), kChat);
  if (!options_.api_key.empty()) out += fmt::format("authorization: {}\r\n", KeyHeader());
  out += fmt::format("content-type: application/json\r\ncontent-length: {}\r\n\r\n{}",
                     w.text().size(), w.text());
  return out;
}

Task<Result<void>> Probe::Ask(std::unique_ptr<ClientConnection>& connection, std::string request,
                              ProbeTurn& turn) {
  const TimePoint deadline = turn.asked + options_.timeout;
  sent_.Count("POST", options_.endpoint.url.ToString() + std::string(kChat));
  if (!connection || !connection->quiet()) {
    connection = std::make_unique<ClientConnection>(loop_);
    auto opening = connection->Open(options_.endpoint, resolver_, deadline);
    auto opened = co_await opening;
    if (!opened) co_return opened;
    turn.asked = loop_.now();  // to connect is not what is measured
  }
  auto sending = SendRequest(*connection, request, deadline);
  auto sent = co_await sending;
  if (!sent) co_return sent;
  auto receiving = Receive(*connection, turn, deadline);
  auto received = co_await receiving;
  if (!received || !connection->Reusable()) connection.reset();
  co_return received;
}

Task<Result<void>> Probe::Receive(ClientConnection& connection, ProbeTurn& turn,
                                  TimePoint deadline) {
  AnswerReader answer(connection, deadline);
  while (!answer.over()) {
    auto reading = answer.Read();
    auto read = co_await reading;
    if (!read) co_return read;
    if (turn.status == 0) turn.TakeHead(answer.head());
    for (const std::string_view piece : answer.pieces()) {
      auto taken = turn.TakePiece(piece, loop_.now());
      if (!taken) co_return taken;
    }
  }
  co_return turn.Outcome();
}

ProbeReport Probe::Take() {
  report_.sent = sent_.All();
  if (!report_.levels.empty()) {
    report_.what = fmt::format(
        "the probe has sent {} requests for {}, about {} prompt tokens, in conversations of {} "
        "turns whose first message has about {} words, for at most {} tokens of answer each",
        report_.requests, Shown(report_.model, 100), report_.prompt_tokens, ProbePlan::kTurns,
        opening_words_, ProbePlan::kAnswerTokens);
  }
  return std::move(report_);
}

namespace {

Task<void> RunAndStop(Loop& loop, Probe& probe) {
  auto running = probe.Run();
  co_await running;
  loop.Stop();
}

}  // namespace

double ProbeLevel::Ratio() const {
  if (first_turns.turns == 0 || follow_ups.turns == 0 || first_turns.median == Duration::zero()) {
    return 0;
  }
  return Seconds(follow_ups.median) / Seconds(first_turns.median);
}

std::vector<size_t> ProbeLevels(size_t most) {
  std::vector<size_t> levels;
  for (size_t at_once = 1; at_once < most; at_once *= 2) levels.push_back(at_once);
  if (most > 0) levels.push_back(most);
  return levels;
}

ProbeReport RunProbe(const ProbePlan& options) {
  Loop loop;
  Resolver resolver;
  Probe probe(loop, resolver, options);
  loop.Post([&] { Spawn(RunAndStop(loop, probe)); });
  loop.Run();
  resolver.Stop();
  return probe.Take();
}

}  // namespace fathom
