#include "router/gateway/prompt_tokens.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/text.h"
#include "codec/json_scan.h"
#include "router/gateway/chat_fields.h"
#include "router/gateway/prompt_kind.h"
#include "router/gateway/token_body.h"
#include "text/tokens/token_ids.h"

namespace fathom {
namespace {

bool IsText(std::string_view value) { return value.starts_with('"'); }
bool IsList(std::string_view value) { return value.starts_with('['); }

// What reading a prompt can take. An id is written with two bytes or more, and its vector may have
// grown to twice its size; a text has at most one token per byte, and is copied and rendered.
constexpr uint64_t kMostPerByteOfIds = 2 * sizeof(TokenId) / 2;
constexpr uint64_t kMostPerByteOfText = 2 + sizeof(TokenId);

// What the cache keeps for a first message, beside whole prompts.
constexpr std::string_view kSampleTokens = "tokens of a first turn";
constexpr std::string_view kCommonTokens = "tokens of all first turns";

// Requests select an adapter by its name, in place of the model's.
uint64_t SeedOf(const RequestFields& fields, const FleetSnapshot& fleet) {
  std::string lora = JsonText(fields.lora_path).value_or("");
  if (lora.empty() && fleet.IsAdapter(fields.model)) lora = fields.model;
  if (lora.empty() && fields.cache_salt.empty()) return kKeySeed;
  return NamespaceSeed(lora, JsonText(fields.cache_salt).value_or(""));
}

// The prompt of a completion: a text, a list of ids, or an unreadable value. Of several prompts,
// the first.
std::string_view FirstPrompt(std::string_view prompt) {
  if (!IsList(prompt)) return prompt;
  const std::string_view first = JsonElements(prompt).Next().value_or("");
  return IsText(first) || IsList(first) ? first : prompt;
}

size_t GuessTokens(const PromptFields& parts) {
  constexpr size_t kBytesPerToken = 4;  // of text, approximately
  const size_t bytes = parts.prompt.size() + parts.messages.size() + parts.tools.size() +
                       parts.system.size() + parts.input.size() + parts.instructions.size();
  return std::min(bytes / kBytesPerToken, PromptReader::kMostGuessed);
}

// The members that determine the tokens of a prompt on this route.
PromptFields PartsOf(const RequestFields& fields, Route route) {
  switch (route) {
    case Route::kMessages:
      return PartsOf(fields.parts, kInMessages);
    case Route::kResponses:
      return PartsOf(fields.parts, kInResponses);
    case Route::kCompletions:
    case Route::kGenerate:
    case Route::kInferenceGenerate: {
      PromptFields parts = PartsOf(fields.parts, kInCompletions);
      parts.prompt = FirstPrompt(TextOrIds(fields, route));
      return parts;
    }
    default:
      return PartsOf(fields.parts, kInChats);
  }
}

// Whether the prompt has parts that are not in its text or ids, in the engines' own routes.
bool HasMedia(const RequestFields& fields, Route route) {
  return fields.media && (route == Route::kGenerate || route == Route::kInferenceGenerate);
}

// All engines of one model are assumed to be of one kind.
EngineKind EngineOf(const FleetSnapshot& fleet, std::string_view model) {
  const auto& serving = fleet.Serving(model);
  return serving.empty() ? EngineKind::kUnknown : serving.front()->worker->report.engine();
}

// What becomes of thoughts in the prompts of SGLang's /v1/messages; not known if none of them has
// said so.
std::optional<std::string> ReasoningParserOf(const FleetSnapshot& fleet, std::string_view model) {
  const auto& serving = fleet.Serving(model);
  const auto report = serving.empty() ? nullptr : serving.front()->worker->report.Current();
  return report ? report->reasoning_parser : std::nullopt;
}

bool IsPrompt(const PromptFields& parts) {
  if (parts.api == PromptApi::kResponses) return IsText(parts.input) || IsList(parts.input);
  return IsText(parts.prompt) || IsList(parts.messages);
}

// The token ids that a chat request contains, for the engine that takes them.
std::string_view OwnIds(const RequestFields& fields, EngineKind engine) {
  if (engine == EngineKind::kSglang) return fields.input_ids;
  return engine == EngineKind::kTrtllm ? fields.prompt_token_ids : std::string_view();
}

UnreadReason ReasonOf(Inexact why) {
  switch (why) {
    case Inexact::kImage:
    case Inexact::kAudio:
    case Inexact::kVideo:
    case Inexact::kFile:
    case Inexact::kUnknownPart:
      return UnreadReason::kMedia;
    case Inexact::kTooLong:
      return UnreadReason::kTooLong;
    case Inexact::kTooLate:
      return UnreadReason::kTimeout;
    case Inexact::kOverload:
      return UnreadReason::kOverload;
    case Inexact::kTruncated:
      return UnreadReason::kTruncated;
    case Inexact::kOwnTemplate:
    case Inexact::kNoTemplate:
    case Inexact::kTemplateRefused:
    case Inexact::kTemplateFailed:
    case Inexact::kNotAPrompt:
      break;
  }
  return UnreadReason::kTemplate;
}

// If the engine answers all the same. Else the client has made a mistake.
std::optional<UnreadReason> WhyUnread(const PromptTokens& prompt, const PromptFields& parts) {
  if (prompt.from != TokensFrom::kNone && prompt.from != TokensFrom::kText) return std::nullopt;
  // A text of a few bytes has no prefix to lose.
  if (prompt.text_whole && prompt.text.empty()) return std::nullopt;
  if (!parts.previous_response_id.empty()) return UnreadReason::kContinued;
  if (prompt.failure == TokenFailure::kTimeout) return UnreadReason::kTimeout;
  if (prompt.failure == TokenFailure::kOverload) return UnreadReason::kOverload;
  if (prompt.inexact) return ReasonOf(*prompt.inexact);
  const bool fails =
      prompt.failure == TokenFailure::kError || prompt.failure == TokenFailure::kRefused;
  return fails ? UnreadReason::kError : UnreadReason::kNoTokenizer;
}

// Which part of a truncated prompt is left, and what stands before the input of a continued
// response, only the engine knows.
bool MayBeByText(const RequestFields& fields, const PromptFields& parts) {
  return IsPrompt(parts) && !fields.truncate && parts.previous_response_id.empty();
}

// Values of texts are never taken for tokens, nor those of one model for another's.
uint64_t TextSeed(uint64_t seed, std::string_view model) {
  constexpr uint64_t kTexts = 0x7465787420666f72;
  return KeyOfText(model, seed ^ kTexts).low;
}

void Use(PromptTokens& prompt, SharedTokens tokens, TokensFrom from) {
  prompt.owner = std::move(tokens);
  prompt.tokens = *prompt.owner;
  prompt.prompt_tokens = prompt.tokens.size();
  prompt.from = from;
}

}  // namespace

SpareTokens::Room SpareTokens::Get() {
  const Return back{this};
  if (kept_.empty()) return Room(new std::vector<TokenId>(), back);
  Room room(kept_.back().release(), back);
  kept_.pop_back();
  return room;
}

void SpareTokens::Take(std::vector<TokenId>* tokens) {
  std::unique_ptr<std::vector<TokenId>> returned(tokens);
  if (kept_.size() == kKept || returned->capacity() > kLargest) return;
  returned->clear();
  kept_.push_back(std::move(returned));
}

PromptReader::PromptReader(const TokenizeOptions& options, Loop& loop,
                           std::shared_ptr<TokenSource> source, const PromptShelves& shelves)
    : options_(options),
      loop_(loop),
      shelves_(shelves),
      models_(shelves.models),
      local_(loop, shelves.side_work, shelves.tokens, options.secret),
      source_(std::move(source)),
      desk_(std::make_shared<TokenDesk>(loop, source_, shelves.tokens, shelves.metrics.duration)) {}

Task<PromptTokens> PromptReader::Read(const RequestFields& fields, Route route,
                                      std::shared_ptr<const FleetSnapshot> fleet) {
  PromptTokens prompt;
  prompt.seed = SeedOf(fields, *fleet);
  if (!HasPrompt(route)) co_return prompt;
  TokenQuestion question;
  question.parts = PartsOf(fields, route);
  const std::string_view text = question.parts.prompt;
  prompt.prompt_tokens = GuessTokens(question.parts);
  prompt.kind = KindOf(question.parts);
  const EngineKind engine = EngineOf(*fleet, fields.model);
  prompt.engine = engine;
  question.model = fleet->NameServed(fields.model);
  question.fleet = std::move(fleet);  // the name may lie in it
  const std::string_view ids = route == Route::kChat ? OwnIds(fields, engine) : text;
  if (HasMedia(fields, route)) {
    prompt.inexact = Inexact::kUnknownPart;
    shelves_.metrics.InexactFor(Inexact::kUnknownPart).Add();
  } else if (IsList(ids)) {
    if (TakeMemory(ids.size() * kMostPerByteOfIds, fields.model, prompt)) ReadIds(ids, prompt);
  } else if (fields.truncate) {
    // Only the engine knows which part is left after truncation.
    prompt.inexact = Inexact::kTruncated;
    shelves_.metrics.InexactFor(Inexact::kTruncated).Add();
  } else if (IsPrompt(question.parts)) {
    if (question.parts.api == PromptApi::kMessages && engine == EngineKind::kSglang) {
      question.reasoning_parser = ReasoningParserOf(*question.fleet, fields.model);
    }
    question.engine = engine;
    const bool literal = options_.literal_user_text && TakesTokenIds(engine, route, fields);
    if (TakeMemory(BytesOf(question.parts) * kMostPerByteOfText, fields.model, prompt)) {
      auto reading = ReadText(question, literal, prompt);
      co_await reading;
    }
  }
  if (options_.by_text && MayBeByText(fields, question.parts)) {
    ReadByText(question.parts, question.model, prompt);
  }
  prompt.memory.ShrinkTo((prompt.tokens.size() + prompt.text.size()) * sizeof(TokenId));
  prompt.unread = WhyUnread(prompt, question.parts);
  shelves_.metrics.From(prompt.from).Add();
  co_return prompt;
}

PromptTokens PromptReader::Continue(const RequestFields& fields, Route route,
                                    const FleetSnapshot& fleet, uint32_t earlier) const {
  const PromptFields parts = PartsOf(fields, route);
  PromptTokens prompt;
  prompt.seed = SeedOf(fields, fleet);
  prompt.prompt_tokens = earlier + GuessTokens(parts);
  prompt.kind = KindOf(parts);
  prompt.engine = EngineOf(fleet, fields.model);
  shelves_.metrics.From(TokensFrom::kNone).Add();
  return prompt;
}

bool PromptReader::TakeMemory(uint64_t bytes, std::string_view model, PromptTokens& prompt) {
  if (prompt.memory.TryTake(shelves_.memory, bytes)) return true;
  prompt.failure = TokenFailure::kOverload;
  shelves_.metrics.Failures(TokenFailure::kOverload).Add();
  source_->Miss(model, TokenFailure::kOverload, loop_.now());
  return false;
}

void PromptReader::ReadIds(std::string_view array, PromptTokens& prompt) {
  prompt.room = spare_.Get();
  if (!AppendTokenIds(array, *prompt.room)) return;  // the engine will report the error
  prompt.tokens = *prompt.room;
  prompt.prompt_tokens = prompt.tokens.size();
  prompt.from = TokensFrom::kIds;
  prompt.kind = PromptKind::kIds;
}

void PromptReader::ReadByText(const PromptFields& parts, std::string_view model,
                              PromptTokens& prompt) {
  const bool instead = prompt.from == TokensFrom::kNone;
  if (!instead && (shelves_.watch == nullptr || !shelves_.watch->HasByText(model))) return;
  // What could be taken for the tokens is enough for the values.
  constexpr uint64_t kMost = 2 * PromptTextReader::kMostText;
  RequestMemory::Share memory;
  const uint64_t bytes =
      std::min<uint64_t>(BytesOf(parts), kMost) + prompt.tokens.size() * sizeof(TokenId);
  if (!memory.TryTake(shelves_.memory, bytes)) return;
  prompt.memory = std::move(memory);
  prompt.text_room = spare_.Get();
  prompt.text_whole = texts_.Read(parts, prompt.engine, *prompt.text_room);
  // An image after a few words: they tell nothing.
  if (!prompt.text_whole && prompt.text_room->size() < ApproximateIndex::kBlock) return;
  prompt.text = *prompt.text_room;
  prompt.text_seed = TextSeed(prompt.seed, model);
  if (!instead || prompt.text.empty()) return;
  prompt.tokens = prompt.text;
  prompt.seed = prompt.text_seed;
  prompt.from = TokensFrom::kText;
  prompt.prompt_tokens = std::max(prompt.text.size(), prompt.text_whole ? 0 : prompt.prompt_tokens);
}

// Where the engines have not said anything of this kind of prompt, what they say of others counts.
ParityVerdict PromptReader::VerdictOf(std::string_view model, PromptKind kind) const {
  if (shelves_.parity == nullptr) return ParityVerdict::kCannotAsk;
  const ParityVerdict verdict = shelves_.parity->Of(model, kind);
  return verdict == ParityVerdict::kUnknown ? shelves_.parity->Of(model) : verdict;
}

std::shared_ptr<const LanguageModel> PromptReader::FilesFor(const TokenQuestion& question,
                                                            PromptKind kind) {
  const std::string_view base = question.fleet->BaseOf(question.model);
  const KnownFiles* const files = models_.Get().Find(question.model, base);
  if (files == nullptr) return nullptr;
  if (files->origin != FilesOrigin::kFound) return files->model;
  const bool may_ask =
      options_.timeout != Duration::zero() && question.engine != EngineKind::kTrtllm;
  const ParityVerdict verdict = VerdictOf(base.empty() ? question.model : base, kind);
  return FilesBelief::Uses(files->origin, verdict, may_ask) ? files->model : nullptr;
}

Task<void> PromptReader::ReadText(const TokenQuestion& question, bool literal,
                                  PromptTokens& prompt) {
  auto model = FilesFor(question, prompt.kind);
  if (FilesDiffer(question, literal, prompt.kind)) {
    model = nullptr;
    prompt.kind = PromptKind::kIds;  // what the files differ in does not concern its tokens
  }
  if (model) {
    const bool may_ask = options_.timeout != Duration::zero();
    if (may_ask && shelves_.builds.ShouldAsk(*model, loop_.now())) {
      auto asking = AskForBuild(model, question);
      co_await asking;
    }
    auto reading = ReadWithFiles(shelves_.builds.Choose(model), question, literal, prompt);
    co_await reading;
    if (!prompt.inexact || !EngineMayKnow(*prompt.inexact)) co_return;
  }
  if (options_.timeout == Duration::zero()) co_return;
  auto asking = AskEngine(question, prompt);
  co_await asking;
}

// The requests of agents are asked for as the router converts them, and that may be what differs.
bool PromptReader::FilesDiffer(const TokenQuestion& question, bool literal, PromptKind kind) const {
  if (shelves_.parity == nullptr || !shelves_.parity->any_differs()) return false;
  if (literal || options_.timeout == Duration::zero()) return false;
  if (question.parts.api != PromptApi::kChat) return false;
  const std::string_view base = question.fleet->BaseOf(question.model);
  const std::string_view name = base.empty() ? question.model : base;
  return shelves_.parity->Of(name, kind) == ParityVerdict::kDiffers;
}

Task<void> PromptReader::ReadWithFiles(std::shared_ptr<const LanguageModel> model,
                                       const TokenQuestion& question, bool literal,
                                       PromptTokens& prompt) {
  const TimePoint begun = std::chrono::steady_clock::now();
  const LocalTokenizer::Manner manner{DialectOf(question.engine), literal,
                                      question.reasoning_parser};
  // If engines are never asked, our own threads still need a limit.
  const Duration patience =
      options_.timeout == Duration::zero() ? TokenizeOptions().timeout : options_.timeout;
  prompt.room = spare_.Get();
  auto reading =
      local_.Read(std::move(model), question.parts, manner,
                  loop_.now() + PatienceFor(prompt.prompt_tokens, patience), *prompt.room);
  LocalTokenizer::Reading read = co_await reading;
  shelves_.metrics.local_duration.Observe(std::chrono::steady_clock::now() - begun);
  prompt.inexact = read.inexact;
  if (read.inexact) {
    shelves_.metrics.InexactFor(*read.inexact).Add();
    shelves_.complaints.Miss(question.model, *read.inexact, read.problem, loop_.now());
  }
  if (prompt.room->empty()) co_return;
  prompt.tokens = *prompt.room;
  prompt.from = read.whole ? TokensFrom::kFiles : TokensFrom::kFilesPart;
  prompt.prompt_tokens =
      read.whole ? prompt.tokens.size() : std::max(prompt.prompt_tokens, prompt.tokens.size());
  prompt.places = std::move(read.places);
  prompt.known = shelves_.prefixes.Find(prompt.places, prompt.seed);
}

Task<void> PromptReader::AskForBuild(std::shared_ptr<const LanguageModel> model,
                                     const TokenQuestion& about) {
  std::string text;
  AppendJsonString(text, model->telling_text());
  TokenQuestion question;
  question.model = about.model;
  question.parts.prompt = text;
  question.fleet = about.fleet;
  question.engine = about.engine;
  const PromptKeys keys(question.model, question.engine, question.parts, options_.secret);
  auto asking = desk_->Ask(keys.whole(), question, loop_.now() + options_.timeout);
  const auto answer = co_await asking;
  if (answer) shelves_.builds.Hear(*model, about.model, **answer);
}

Task<void> PromptReader::AskEngine(const TokenQuestion& question, PromptTokens& prompt) {
  const PromptKeys keys(question.model, question.engine, question.parts, options_.secret);
  if (SharedTokens known = shelves_.tokens.Find(keys.whole())) {
    Use(prompt, std::move(known), TokensFrom::kCache);
    co_return;
  }
  const Duration patience = PatienceFor(prompt.prompt_tokens, options_.timeout);
  auto asking = desk_->Ask(keys.whole(), question, loop_.now() + patience);
  auto answer = co_await asking;
  if (answer) {
    LearnBeginning(keys, *answer);
    Use(prompt, *std::move(answer), TokensFrom::kEngine);
    co_return;
  }
  prompt.failure = answer.error();
  shelves_.metrics.Failures(answer.error()).Add();
  source_->Miss(question.model, answer.error(), loop_.now());
  UseEarlierTurn(keys, prompt);
}

void PromptReader::Keep(const PromptTokens& prompt, PrefixKeys keys) {
  shelves_.prefixes.Put(prompt.places, prompt.seed, prompt.known.tokens, std::move(keys));
}

// As long as the prefill takes that a known prefix may save: then waiting costs no more than it
// gains.
Duration PromptReader::PatienceFor(size_t tokens, Duration least) const {
  const auto usual = static_cast<double>(Duration(kUsualUnit).count());
  const double unit = options_.speed != nullptr ? options_.speed->unit() : usual;
  const double worth = PrefillWork(static_cast<double>(tokens), 0) * unit;
  const auto most = static_cast<double>(Duration(kMostPatience).count());
  return std::max(least, Duration(static_cast<int64_t>(std::min(worth, most))));
}

void PromptReader::UseEarlierTurn(const PromptKeys& keys, PromptTokens& prompt) {
  for (size_t i = 0; i < keys.earlier(); ++i) {
    if (UseBeginning(shelves_.tokens.Find(keys.Earlier(i)), prompt)) return;
  }
  if (const TextKey* const first = keys.first_message()) {
    UseBeginning(shelves_.tokens.Find(ChainText(*first, kCommonTokens, options_.secret)), prompt);
  }
}

bool PromptReader::UseBeginning(SharedTokens known, PromptTokens& prompt) {
  if (!known || known->size() <= kUncertain) return false;
  const size_t guess = prompt.prompt_tokens;
  Use(prompt, std::move(known), TokensFrom::kEnginePart);
  prompt.tokens = prompt.tokens.first(prompt.tokens.size() - kUncertain);
  prompt.prompt_tokens = std::max(guess, prompt.prompt_tokens);
  return true;
}

// First turns with the same first message, which differ in the second: what their tokens have in
// common belongs to the first message, and to every conversation that begins with it.
void PromptReader::LearnBeginning(const PromptKeys& keys, const SharedTokens& tokens) {
  if (keys.first_message() == nullptr || keys.messages() != 2) return;
  const TextKey sample_key = ChainText(*keys.first_message(), kSampleTokens, options_.secret);
  const TextKey common_key = ChainText(*keys.first_message(), kCommonTokens, options_.secret);
  const SharedTokens sample = shelves_.tokens.Find(sample_key);
  if (!sample) return shelves_.tokens.Put(sample_key, tokens);
  const SharedTokens known = shelves_.tokens.Find(common_key);
  const std::vector<TokenId>& other = known ? *known : *sample;
  const auto common =
      static_cast<size_t>(std::ranges::mismatch(*tokens, other).in1 - tokens->begin());
  const bool same_prompt = common == tokens->size();
  if (same_prompt || (known && common == known->size())) return;
  const auto first = std::span(*tokens).first(common);
  shelves_.tokens.Put(common_key,
                      std::make_shared<const std::vector<TokenId>>(first.begin(), first.end()));
}

}  // namespace fathom
