#include "io/client/conversations.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "codec/json.h"
#include "codec/sse.h"
#include "io/client/answer_reader.h"
#include "io/http/fetch.h"

namespace fathom {
namespace {

constexpr Duration kPauseAfterProblem = std::chrono::milliseconds(200);

constexpr std::array<std::string_view, 32> kWords = {
    "river", "depth",  "measure", "line", "anchor", "tide",   "harbour", "lead",
    "chart", "sound",  "bottom",  "reef", "sail",   "watch",  "north",   "wind",
    "cargo", "engine", "signal",  "crew", "night",  "storm",  "coast",   "light",
    "rope",  "knot",   "keel",    "mast", "deck",   "bridge", "log",     "fathom"};

}  // namespace

std::string MakeWords(Random& random, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) text += ' ';
    text += kWords[random.Below(kWords.size())];
  }
  return text;
}

struct Conversations::Person {
  Person(uint64_t seed, size_t n) : random(seed), number(n) {}

  Random random;
  const size_t number;
  uint64_t conversation = 0;
  std::vector<Message> messages;
  std::unique_ptr<ClientConnection> connection;
};

// One answer as it comes in.
struct Conversations::Reply {
  TimePoint asked;
  TimePoint last;
  SseReader events;
  std::string text;
  bool first_turn = false;
  bool begun = false;
  bool done = false;  // [DONE] was seen
  std::string problem;
};

Conversations::Conversations(Loop& loop, Resolver& resolver, const ConversationOptions& options)
    : loop_(loop), resolver_(resolver), options_(options) {
  Random seeds(options.seed);
  system_ = MakeWords(seeds, options.system_words);
  for (size_t i = 0; i < options.people; ++i) {
    people_.push_back(std::make_unique<Person>(seeds.Next(), i));
  }
}

Conversations::~Conversations() = default;

void Conversations::Start() {
  for (const auto& person : people_) Spawn(Live(*person));
}

Duration Conversations::Exponential(Random& random, Duration mean) const {
  return std::chrono::duration_cast<Duration>(mean * -std::log(1.0 - random.Unit()));
}

Task<void> Conversations::Live(Person& person) {
  ++present_;
  const Duration late = std::chrono::duration_cast<Duration>(options_.think * person.random.Unit());
  co_await loop_.Sleep(late);
  while (!stopping_) {
    ++person.conversation;
    person.messages.clear();
    if (!system_.empty()) person.messages.push_back({"system", system_});
    for (size_t turn = 0; turn < options_.turns && !stopping_; ++turn) {
      const size_t words = turn == 0 ? options_.opening_words : options_.reply_words;
      person.messages.push_back({"user", MakeWords(person.random, words)});
      auto taking = TakeTurn(person, turn == 0);
      const bool answered = co_await taking;
      if (!answered) break;
      const Duration think = Exponential(person.random, options_.think);
      co_await loop_.Sleep(think);
    }
  }
  person.connection.reset();
  --present_;
}

Task<bool> Conversations::TakeTurn(Person& person, bool first) {
  Reply reply;
  reply.first_turn = first;
  reply.asked = reply.last = loop_.now();
  auto asking = Ask(person, reply);
  const auto asked = co_await asking;
  if (asked && reply.done) {
    ++report_.completed;
    person.messages.push_back({"assistant", std::move(reply.text)});
    co_return true;
  }
  ++report_.errors;
  person.connection.reset();
  if (report_.first_problem.empty()) {
    report_.first_problem = asked ? "the stream ended without [DONE]" : asked.error().what;
  }
  co_await loop_.Sleep(kPauseAfterProblem);
  co_return false;
}

std::string Conversations::BuildRequest(const Person& person) const {
  JsonWriter w;
  w.BeginObject().Key("model").String(options_.model).Key("messages").BeginArray();
  for (const Message& message : person.messages) {
    w.BeginObject().Key("role").String(message.role).Key("content").String(message.text);
    w.EndObject();
  }
  w.EndArray().Key("max_tokens").Unsigned(options_.max_tokens).Key("stream").Bool(true);
  w.Key("stream_options").BeginObject().Key("include_usage").Bool(true).EndObject().EndObject();
  std::string out;
  AppendRequestHead(out, "POST", options_.endpoint.url, "/v1/chat/completions");
  if (options_.sessions) {
    out += fmt::format("x-session-id: person-{}-{}\r\n", person.number, person.conversation);
  }
  out += fmt::format("content-type: application/json\r\ncontent-length: {}\r\n\r\n{}",
                     w.text().size(), w.text());
  return out;
}

Task<Result<void>> Conversations::Ask(Person& person, Reply& reply) {
  const TimePoint deadline = loop_.now() + options_.timeout;
  if (!person.connection || !person.connection->quiet()) {
    person.connection = std::make_unique<ClientConnection>(loop_);
    auto opening = person.connection->Open(options_.endpoint, resolver_, deadline);
    const auto opened = co_await opening;
    if (!opened) co_return opened;
  }
  const std::string request = BuildRequest(person);
  auto sending = SendRequest(*person.connection, request, deadline);
  auto sent = co_await sending;
  if (!sent) co_return sent;
  auto receiving = Receive(person, reply);
  const auto received = co_await receiving;
  if (received && !person.connection->Reusable()) person.connection.reset();
  co_return received;
}

Task<Result<void>> Conversations::Receive(Person& person, Reply& reply) {
  AnswerReader answer(*person.connection, loop_.now() + options_.timeout);
  while (!answer.over()) {
    auto reading = answer.Read();
    auto read = co_await reading;
    if (!read) co_return read;
    if (answer.head().status != 200) {
      co_return Fail(Blame::kPeer, "status {}", answer.head().status);
    }
    for (const std::string_view piece : answer.pieces()) reply.events.Feed(piece);
    TakeEvents(reply);
    if (!reply.problem.empty()) co_return Fail(Blame::kPeer, "{}", reply.problem);
  }
  co_return Result<void>();
}

void Conversations::TakeEvents(Reply& reply) {
  while (const auto data = reply.events.Next()) {
    if (*data == "[DONE]") {
      reply.done = true;
      continue;
    }
    const auto chunk = Json::Parse(*data);
    if (!chunk || chunk->Find("error") != nullptr) {
      reply.problem = chunk ? "an error event" : "an event that is not JSON";
      return;
    }
    const AnswerUsage usage = UsageOf(*chunk);
    report_.tokens += usage.completion_tokens;
    report_.prompt_tokens += usage.prompt_tokens;
    report_.cached_tokens += usage.cached_tokens;
    const Json* const choices = chunk->Find("choices");
    if (choices == nullptr || choices->array() == nullptr || choices->array()->empty()) continue;
    const Json* const delta = choices->array()->front().Find("delta");
    const Json* const text = delta == nullptr ? nullptr : delta->Find("content");
    if (text == nullptr || text->string() == nullptr || text->string()->empty()) continue;
    reply.text += *text->string();
    if (reply.begun) {
      report_.between_tokens.Record(loop_.now() - reply.last);
    } else {
      (reply.first_turn ? report_.first_turn : report_.follow_up).Record(loop_.now() - reply.asked);
    }
    reply.begun = true;
    reply.last = loop_.now();
  }
}

}  // namespace fathom
