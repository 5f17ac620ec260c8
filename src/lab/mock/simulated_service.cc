#include "lab/mock/simulated_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "lab/mock/answer_text.h"
#include "lab/mock/generate_answer.h"
#include "lab/mock/mock_tokenizer.h"

namespace fathom {
namespace {

constexpr size_t kMostSequences = 4096;  // of one request

bool IsAgents(MockRoute route) {
  return route == MockRoute::kMessages || route == MockRoute::kResponses;
}

// SGLang has its own name for what its own code refuses.
std::unexpected<Answer> BadRequest(MockedEngine engine, MockRoute route, std::string message,
                                   std::string_view param = {}) {
  const bool sglang = engine == MockedEngine::kSglang;
  return std::unexpected(RefusalAnswer(engine, route,
                                       {.type = sglang ? "BadRequest" : "BadRequestError",
                                        .message = std::move(message),
                                        .param = param}));
}

std::optional<int64_t> ParseInteger(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Task<Outcome> SimulatedService::Serve(Visit& visit) {
  auto call = Admit(visit);
  if (!call) {
    auto refusing = Finish(visit, std::move(call).error());
    const Outcome outcome = co_await refusing;
    co_return outcome;
  }
  Ticket ticket(ranks_.at(call->rank), visit.presence);
  if (auto submitted = Submit(*call, ticket); !submitted) {
    auto refusing = Finish(visit, std::move(submitted).error());
    const Outcome outcome = co_await refusing;
    co_return outcome;
  }
  auto answering = visit.request.stream ? AnswerStream(*call, ticket) : AnswerWhole(*call, ticket);
  const Outcome outcome = co_await answering;
  co_return outcome;
}

std::expected<SimulatedService::Call, Answer> SimulatedService::Admit(Visit& visit) const {
  const auto rank = RankFor(visit);
  if (!rank) return std::unexpected(rank.error());
  Call call{.visit = visit, .prompts = std::move(visit.prompts), .rank = *rank, .choices = {}};
  if (const auto checked = CheckLengths(call); !checked) return std::unexpected(checked.error());
  for (size_t i = 0; i < call.prompts.size() * visit.request.choices; ++i) {
    call.choices.emplace_back(visit.request.stop);
    call.choices.back().prompt = i / visit.request.choices;
  }
  call.running = call.choices.size();
  return call;
}

// Each engine in its own way: vLLM passes over what is no number, SGLang refuses it, TensorRT-LLM
// has no such thing.
std::expected<size_t, Answer> SimulatedService::RankFor(const Visit& visit) const {
  if (options_.engine == MockedEngine::kTrtllm) return ranks_.LeastLoaded();
  std::optional<int64_t> wanted;
  if (visit.request.rank && options_.engine == MockedEngine::kSglang) {
    wanted = static_cast<int64_t>(*visit.request.rank);
  }
  if (const Header* given = visit.connection.head().headers.Find("x-data-parallel-rank")) {
    wanted = ParseInteger(given->value);
    if (!wanted && options_.engine == MockedEngine::kSglang) {
      return Refused(visit, fmt::format("Invalid X-Data-Parallel-Rank header: {}", given->value));
    }
  }
  if (!wanted) return ranks_.LeastLoaded();
  if (*wanted >= 0 && static_cast<uint64_t>(*wanted) < ranks_.size()) {
    return static_cast<size_t>(*wanted);
  }
  return Refused(
      visit, fmt::format("data_parallel_rank {} is out of range [0, {}).", *wanted, ranks_.size()));
}

std::unexpected<Answer> SimulatedService::Refused(const Visit& visit, std::string message,
                                                  std::string_view param) const {
  return BadRequest(options_.engine, visit.route, std::move(message), param);
}

std::expected<void, Answer> SimulatedService::CheckLengths(const Call& call) const {
  const CompletionRequest& request = call.visit.request;
  if (call.prompts.empty() || call.prompts.size() * request.choices > kMostSequences) {
    return Refused(call.visit,
                   fmt::format("between 1 and {} sequences can be asked for", kMostSequences));
  }
  for (const auto& prompt : call.prompts) {
    if (prompt.empty()) return Refused(call.visit, "The decoder prompt cannot be empty");
    const auto checked = options_.engine == MockedEngine::kSglang
                             ? CheckSglangLength(call, prompt.size())
                             : CheckVllmLength(call, prompt.size());
    if (!checked) return checked;
  }
  return {};
}

// The answer may take what the prompt leaves, if that is anything.
std::expected<void, Answer> SimulatedService::CheckVllmLength(const Call& call,
                                                              uint64_t input) const {
  const uint64_t most = MaxModelLength(options_);
  if (input > most) {
    return Refused(
        call.visit,
        fmt::format("This model's maximum context length is {0} tokens. However, your prompt "
                    "contains {1} input tokens, which exceeds this limit even without any output "
                    "tokens. Please reduce the length of the input prompt. "
                    "(parameter=input_tokens, value={1})",
                    most, input),
        "input_tokens");
  }
  if (input == most) {
    return Refused(call.visit,
                   "max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)",
                   "max_tokens");
  }
  return {};
}

std::expected<void, Answer> SimulatedService::CheckSglangLength(const Call& call,
                                                                uint64_t input) const {
  const uint64_t most = MaxModelLength(options_);
  if (input >= most) {
    return Refused(call.visit, fmt::format("The input ({} tokens) is longer than the model's "
                                           "context length ({} tokens).",
                                           input, most));
  }
  const uint64_t output = call.visit.request.max_tokens.value_or(0);
  if (input + output <= most) return {};
  return Refused(
      call.visit,
      fmt::format("Requested token count exceeds the model's maximum context length of {} tokens. "
                  "You requested a total of {} tokens: {} tokens from the input messages and {} "
                  "tokens for the completion. Please reduce the number of tokens in the input "
                  "messages or the completion to fit within the limit.",
                  most, input + output, input, output));
}

Result<EngineRequest> SimulatedService::RequestFor(const Call& call, const Choice& choice,
                                                   size_t copy) const {
  const std::vector<TokenId>& prompt = call.prompts[choice.prompt];
  const uint64_t room = MaxModelLength(options_) - prompt.size();
  EngineRequest request;
  request.prompt = prompt;
  request.max_tokens = static_cast<uint32_t>(
      std::clamp<uint64_t>(call.visit.tokens, 1, std::max<uint64_t>(room, 1)));
  request.salt = call.visit.request.cache_salt;
  request.skip_cache = call.visit.request.prompt_logprobs;
  const std::string& model = call.visit.identity.model;
  if (IsAdapter(options_, model)) request.lora = model;
  const AnswerSeed seed{.speaker = options_.name,
                        .rank = call.rank,
                        .seed = options_.seed,
                        .choice = copy,
                        .inside_text = !call.visit.identity.chat};
  TRY(request.answer, MakeAnswer(seed, prompt, request.max_tokens, tokenizer_));
  return request;
}

std::expected<void, Answer> SimulatedService::Submit(Call& call, Ticket& ticket) const {
  for (size_t i = 0; i < call.choices.size(); ++i) {
    const size_t copy = i % call.visit.request.choices;
    auto request = RequestFor(call, call.choices[i], copy);
    if (!request) return Refused(call.visit, request.error().what);
    const auto submitted = ticket.Submit(*std::move(request));
    if (!submitted) return Refused(call.visit, submitted.error().what);
  }
  return {};
}

SimulatedAnswer SimulatedService::AnswerFor(const Call& call) const {
  const AnswerManner manner{.engine = options_.engine,
                            .token_ids = call.visit.request.return_token_ids,
                            .cached_tokens = options_.cached_tokens_report};
  return {call.visit.identity, manner};
}

AgentAnswer SimulatedService::AgentAnswerFor(const Call& call) const {
  return {call.visit.identity, call.visit.route, options_};
}

std::string SimulatedService::WholeBody(const Call& call) const {
  if (call.visit.route == MockRoute::kGenerate) {
    return GenerateAnswer(call.visit.identity, options_).Whole(call.choices, call.prompts);
  }
  if (!IsAgents(call.visit.route)) return AnswerFor(call).Whole(call.choices, call.prompts);
  const Choice& choice = call.choices.front();
  return AgentAnswerFor(call).Whole(choice.text.said(), choice.finish_reason,
                                    UsageOf(choice, call.prompts));
}

void SimulatedService::Remember(const Call& call) const {
  if (call.visit.route != MockRoute::kResponses) return;
  if (MemberNamed(call.visit.members, "store") == "false") return;
  // The brackets go; the answer is one more item.
  std::string items = call.visit.conversation.substr(1, call.visit.conversation.size() - 2);
  items += R"(,{"type":"message","role":"assistant","content":)";
  AppendJsonString(items, call.choices.front().text.said());
  items += '}';
  options_.responses->Put(call.visit.identity.id,
                          {.items = std::move(items), .page = WholeBody(call)});
}

std::unique_ptr<StreamVoice> SimulatedService::VoiceFor(const Call& call) const {
  if (IsAgents(call.visit.route)) return std::make_unique<AgentVoice>(AgentAnswerFor(call));
  if (call.visit.route == MockRoute::kGenerate) {
    return std::make_unique<GenerateVoice>(GenerateAnswer(call.visit.identity, options_),
                                           SendsUsage(call));
  }
  const CompletionVoice::Habits habits{.chat = call.visit.identity.chat,
                                       .usage = SendsUsage(call),
                                       .usage_with_choices = options_.usage_with_choices};
  return std::make_unique<CompletionVoice>(AnswerFor(call), habits);
}

bool SimulatedService::SendsUsage(const Call& call) const {
  return call.visit.request.include_usage || options_.force_usage;
}

std::string_view SimulatedService::Hear(Call& call, Ticket& ticket,
                                        const Ticket::Token& token) const {
  Choice& choice = call.choices[token.choice];
  // vLLM forgets what a sequence had found once it has preempted it.
  const bool forgotten = token.preempted && options_.engine == MockedEngine::kVllm;
  choice.cached_tokens = forgotten ? 0 : token.cached_tokens;
  choice.tokens.push_back(token.token);
  ++call.tokens;
  std::string_view said = choice.text.Add(tokenizer_.Piece(token.token));
  if (choice.text.found() != nullptr) {
    choice.finish_reason = "stop";
    ticket.Cancel(token.choice);
  } else if (token.finished) {
    choice.finish_reason = call.visit.finish_reason;
    // What was held back follows what is said now.
    const size_t before = choice.text.said().size() - said.size();
    choice.text.Rest();
    said = choice.text.said().substr(before);
  }
  if (!choice.finish_reason.empty()) --call.running;
  return said;
}

bool SimulatedService::DiesNow(const Call& call) const {
  return options_.die_after_tokens > 0 && call.tokens == options_.die_after_tokens &&
         call.running > 0;
}

bool SimulatedService::StallsNow(const Call& call) {
  return call.visit.request.stall_after == call.tokens && call.running > 0;
}

std::vector<size_t> SimulatedService::Abort(Call& call, Ticket& ticket) {
  std::vector<size_t> ended;
  for (size_t i = 0; i < call.choices.size(); ++i) {
    if (!call.choices[i].finish_reason.empty()) continue;
    call.choices[i].finish_reason = "abort";
    ticket.Cancel(i);
    ended.push_back(i);
  }
  call.running = 0;
  return ended;
}

Task<Outcome> SimulatedService::AbortStream(Call& call, Ticket& ticket, StreamVoice& voice) {
  std::string out;
  for (const size_t i : Abort(call, ticket)) {
    out += voice.Say(i, call.choices, "", false, call.prompts);
  }
  if (out.empty()) co_return Outcome::kCompleted;
  ServerConnection& connection = call.visit.connection;
  const IoResult written = co_await connection.socket().Write(out, connection.WriteDeadline());
  co_return written.ok() ? Outcome::kCompleted : Outcome::kCancelled;
}

Task<Outcome> SimulatedService::AnswerWhole(Call& call, Ticket& ticket) {
  while (call.running > 0) {
    if (options_.abort_running) {
      Abort(call, ticket);
      break;
    }
    if (DiesNow(call)) co_return Die(call.visit);
    if (StallsNow(call)) {
      auto falling = FallSilent(call.visit);
      const Outcome outcome = co_await falling;
      co_return outcome;
    }
    if (const auto token = ticket.Take()) {
      Hear(call, ticket, *token);
      continue;
    }
    const bool present = co_await call.visit.presence.Until(kNever);
    if (!present) co_return Outcome::kCancelled;
  }
  Remember(call);
  auto finishing = Finish(call.visit, JsonAnswer(200, WholeBody(call)));
  const Outcome outcome = co_await finishing;
  co_return outcome;
}

Task<Outcome> SimulatedService::AnswerStream(Call& call, Ticket& ticket) {
  ServerConnection& connection = call.visit.connection;
  Socket& socket = connection.socket();
  const std::unique_ptr<StreamVoice> voice = VoiceFor(call);
  std::string out;
  AppendHead(out, call.visit, "text/event-stream; charset=utf-8");
  out += "transfer-encoding: chunked\r\n\r\n";
  connection.MarkAnswered();
  const IoResult begun = co_await socket.Write(out, connection.WriteDeadline());
  if (!begun.ok()) co_return Outcome::kCancelled;

  auto streaming = StreamTokens(call, ticket, *voice);
  const Outcome outcome = co_await streaming;
  if (outcome != Outcome::kCompleted) co_return outcome;

  Remember(call);
  out = voice->End(call.choices, call.prompts);
  const IoResult ended = co_await socket.Write(out, connection.WriteDeadline());
  co_return ended.ok() ? Outcome::kCompleted : Outcome::kCancelled;
}

// The events with text in them, from the role to the last finish_reason.
Task<Outcome> SimulatedService::StreamTokens(Call& call, Ticket& ticket, StreamVoice& voice) {
  ServerConnection& connection = call.visit.connection;
  std::string out;
  while (call.running > 0) {
    if (options_.abort_running) {
      auto aborting = AbortStream(call, ticket, voice);
      const Outcome outcome = co_await aborting;
      co_return outcome;
    }
    if (DiesNow(call)) co_return Die(call.visit);
    if (StallsNow(call)) {
      auto falling = FallSilent(call.visit);
      const Outcome outcome = co_await falling;
      co_return outcome;
    }
    const auto token = ticket.Take();
    if (!token) {
      const bool present = co_await call.visit.presence.Until(kNever);
      if (!present) co_return Outcome::kCancelled;
      continue;
    }
    const Choice& choice = call.choices[token->choice];
    out.clear();
    if (choice.tokens.empty()) out = voice.Before(token->choice, call.prompts, call.choices);
    const std::string_view said = Hear(call, ticket, *token);
    out += voice.Say(token->choice, call.choices, said, call.running == 0, call.prompts);
    if (out.empty()) continue;  // held back
    const IoResult written = co_await connection.socket().Write(out, connection.WriteDeadline());
    if (!written.ok()) co_return Outcome::kCancelled;
  }
  co_return Outcome::kCompleted;
}

Task<bool> SimulatedService::Probe(Presence& presence) {
  Ticket ticket(ranks_.at(ranks_.LeastLoaded()), presence);
  EngineRequest request;
  auto prompt = tokenizer_.Continuation("health");
  if (!prompt) co_return true;
  request.prompt = *std::move(prompt);
  request.max_tokens = 1;
  if (!ticket.Submit(std::move(request))) co_return true;
  while (!ticket.Take()) {
    const bool present = co_await presence.Until(kNever);
    if (!present) co_return false;
  }
  co_return true;
}

}  // namespace fathom
