#include "router/gateway/parity_check.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "base/wall_time.h"
#include "codec/json_scan.h"
#include "metrics/catalogue.h"
#include "router/fleet/token_agreement.h"
#include "router/gateway/chat_fields.h"
#include "router/gateway/prompt_kind.h"
#include "router/gateway/token_body.h"
#include "router/gateway/tokenize_wire.h"
#include "text/tokens/token_ids.h"

namespace fathom {
namespace {

constexpr std::array<std::string_view, 5> kOutcomeNames = {"agrees", "differs", "inconclusive",
                                                           "unanswered", "unsupported"};
// No probe prompt is nearly as long.
constexpr size_t kMostAnswered = 4096;
// Repeated checks of a fleet are spread over a quarter of the time between them.
constexpr uint64_t kSpread = 16;

std::string WithModel(std::string_view model, std::string_view members, const ParityProbe& probe) {
  std::string body = "{\"model\":";
  AppendJsonString(body, model);
  return body.append(members).append(",").append(probe.body.substr(1));
}

std::string_view RenderPath(PromptApis api) {
  switch (api) {
    case kInCompletions:
      return "/v1/completions/render";
    case kInMessages:
      return "/v1/messages/render";
    case kInResponses:
      return "/v1/responses/render";
    default:
      return "/v1/chat/completions/render";
  }
}

// {"token_ids": [1, 2], ...}; of a completion, a list of one such object.
TokenAnswer ReadRendering(std::string_view body) {
  if (body.starts_with('[')) body = JsonElements(body).Next().value_or("");
  JsonScanner members(body);
  for (;;) {
    const auto member = members.Next();
    if (!member || !*member) return std::unexpected(TokenFailure::kError);
    if (!JsonKeyIs((*member)->key, "token_ids")) continue;
    std::vector<TokenId> tokens;
    if (!AppendTokenIds((*member)->value, tokens, kMostAnswered)) {
      return std::unexpected(TokenFailure::kError);
    }
    return tokens;
  }
}

std::optional<uint64_t> ReadCount(std::string_view body) {
  JsonScanner members(body);
  for (;;) {
    const auto member = members.Next();
    if (!member || !*member) return std::nullopt;
    if (JsonKeyIs((*member)->key, "input_tokens")) return ParseDecimal((*member)->value);
  }
}

void Merge(ParityReport& all, const ParityReport& more) {
  for (size_t i = 0; i < kPromptKinds; ++i) {
    const bool worse =
        more.verdicts[i] == ParityVerdict::kDiffers && all.verdicts[i] != ParityVerdict::kDiffers;
    if (!worse && all.verdicts[i] != ParityVerdict::kUnknown) continue;
    all.verdicts[i] = more.verdicts[i];
    all.differences[i] = more.differences[i];
  }
}

bool AnyIs(const ParityReport& report, ParityVerdict verdict) {
  return std::ranges::find(report.verdicts, verdict) != report.verdicts.end();
}

}  // namespace

// The questions about one model to one worker.
struct ParityCheck::Inquiry {
  const Check& check;
  Subject& subject;
  EngineKind engine = EngineKind::kUnknown;
  std::optional<std::string> reasoning_parser;
  std::optional<bool> renders;  // whether it shows what its endpoints make of requests
  bool answered = false;        // any question
  ParityReport report;
  TokenDifference difference;  // of the last comparison that differs

  const Worker& worker() const { return *check.worker; }
  LanguageModel::Manner Manner(const PromptFields& parts) const {
    LanguageModel::Manner manner{.dialect = DialectOf(engine), .now = LocalSecondsNow()};
    const bool marks = parts.api == PromptApi::kMessages && engine == EngineKind::kSglang;
    if (marks) manner.reasoning_parser = reasoning_parser;
    manner.limits = {.steps = 50'000};
    return manner;
  }
  void Note(PromptKind kind, Outcome outcome) {
    ParityVerdict& verdict = report.verdicts[static_cast<size_t>(kind)];
    if (outcome == Outcome::kDiffers && verdict != ParityVerdict::kDiffers) {
      verdict = ParityVerdict::kDiffers;
      report.differences[static_cast<size_t>(kind)] = difference;
    } else if (outcome == Outcome::kAgrees && verdict == ParityVerdict::kUnknown) {
      verdict = ParityVerdict::kAgrees;
    }
  }
};

ParityCheck::ParityCheck(Loop& control, Resolver& resolver, const Directory& directory,
                         const Fleet& fleet, const ModelLibrary& models, TokenizerBuilds& builds,
                         ParityBoard& board, Registry& registry, Log& log, bool forwards_ids,
                         Duration again_after)
    : loop_(control),
      fleet_(fleet),
      models_(models),
      builds_(builds),
      board_(board),
      log_(log),
      forwards_ids_(forwards_ids),
      again_after_(again_after),
      calls_(control, resolver, directory) {
  for (size_t i = 0; i < kOutcomes; ++i) {
    outcomes_[i] = &registry.AddCounter(Metric("kv_router_parity_probes_total"),
                                        {{"result", std::string(kOutcomeNames[i])}});
  }
}

// Adapters have the tokens of their base model.
std::vector<ParityCheck::Subject> ParityCheck::SubjectsOf(const Worker& worker) const {
  if (models_.empty()) return {};
  const auto fleet = fleet_.Current();
  const Member* const member = fleet->Find(worker.id());
  if (member == nullptr || !member->reported) return {};
  std::vector<std::string> names;
  std::ranges::set_difference(member->models, member->adapters, std::back_inserter(names));
  if (member->any_model) names.emplace_back();
  const auto shelf = models_.Current();
  std::vector<Subject> subjects;
  for (std::string& name : names) {
    const KnownFiles* const files = shelf->Find(name);
    if (files == nullptr || files->model == nullptr) continue;
    const auto same = std::ranges::find(subjects, files->model, &Subject::files);
    if (same != subjects.end()) {
      same->models.push_back(std::move(name));
    } else if (subjects.size() < kMostModels) {
      const bool found = files->origin == FilesOrigin::kFound;
      subjects.push_back({{std::move(name)}, files->model, found, builds_.Choose(files->model)});
    }
  }
  return subjects;
}

bool ParityCheck::Concerns(const Worker& worker) const {
  return worker.report.engine() != EngineKind::kTrtllm && !SubjectsOf(worker).empty();
}

void ParityCheck::Begin(const std::shared_ptr<Worker>& worker, std::function<void()> done) {
  Start(worker, SubjectsOf(*worker), false, std::move(done));
}

void ParityCheck::Repeat(const std::shared_ptr<Worker>& worker) {
  const auto found = standings_.find(worker->id());
  if (found == standings_.end() || found->second.check) return;
  std::vector<Subject> subjects = SubjectsOf(*worker);
  const bool same = subjects == found->second.subjects;
  if (same && loop_.now() < found->second.again) return;
  Start(worker, std::move(subjects), same, [] {});
}

void ParityCheck::Forget(WorkerId id) {
  const auto left = standings_.extract(id);
  if (!left) return;
  if (left.mapped().check) left.mapped().check->outdated = true;
  board_.Forget(id);
}

void ParityCheck::Start(const std::shared_ptr<Worker>& worker, std::vector<Subject> subjects,
                        bool repeated, std::function<void()> done) {
  Standing& standing = standings_[worker->id()];
  if (standing.check) standing.check->outdated = true;
  standing.subjects = subjects;
  standing.again = kNever;
  standing.check = std::make_shared<Check>(worker, std::move(subjects), repeated, std::move(done));
  queue_.push_back(standing.check);
  StartNext();
}

// A check that asks nothing ends inside Spawn().
void ParityCheck::StartNext() {
  if (std::exchange(starting_, true)) return;
  while (running_ < kMostAtOnce && !queue_.empty()) {
    const std::shared_ptr<Check> check = std::move(queue_.front());
    queue_.pop_front();
    if (check->outdated) continue;
    ++running_;
    Spawn(Run(check));
  }
  starting_ = false;
}

Task<void> ParityCheck::Run(std::shared_ptr<Check> check) {
  std::vector<ParityReport> reports;
  bool complete = true;
  const auto report = check->worker->report.Current();
  for (Subject& subject : check->subjects) {
    if (check->outdated || !complete) break;
    Inquiry inquiry{.check = *check,
                    .subject = subject,
                    .engine = check->worker->report.engine(),
                    .reasoning_parser = report ? report->reasoning_parser : std::nullopt};
    auto inquiring = Inquire(inquiry);
    complete = co_await inquiring;
    reports.push_back(std::move(inquiry.report));
  }
  --running_;
  if (!check->outdated && UsesOtherBuild(*check)) {
    Start(check->worker, check->subjects, check->repeated, std::move(check->done));
  } else if (!check->outdated) {
    Publish(*check, reports, complete);
  }
  StartNext();
}

// The answer of another worker may have shown in the meantime which build the engines use.
bool ParityCheck::UsesOtherBuild(const Check& check) const {
  return std::ranges::any_of(check.subjects, [this](const Subject& subject) {
    return subject.build != builds_.Choose(subject.files);
  });
}

void ParityCheck::Publish(Check& check, const std::vector<ParityReport>& reports, bool complete) {
  const WorkerId id = check.worker->id();
  auto all = std::make_shared<ParityReport>();
  for (const ParityReport& report : reports) Merge(*all, report);
  // Of a worker that was asked before, an engine that does not answer now shows nothing new.
  if (complete || !check.repeated) {
    // It may have had other models before.
    if (!check.repeated) board_.Forget(id);
    for (size_t i = 0; i < reports.size(); ++i) {
      for (const std::string& name : check.subjects[i].models) {
        board_.Publish(id, name, reports[i].verdicts);
      }
      const std::string& model = check.subjects[i].model();
      const bool agrees = board_.Of(model) == ParityVerdict::kAgrees;
      if (!agrees || std::ranges::find(agreed_, model) != agreed_.end()) continue;
      if (agreed_.size() < Fleet::kMaxWorkers) agreed_.push_back(model);
      log_.Info("An engine's tokens agree with the model's files",
                {{"model", model.empty() ? "(all)" : model}, {"url", check.worker->spec().url}});
    }
    check.worker->ranks.Probed(all);
  }
  Standing& standing = standings_[id];
  standing.check = nullptr;
  standing.subjects = check.subjects;
  if (!complete || AnyIs(*all, ParityVerdict::kDiffers)) {
    standing.again = loop_.now() + again_after_ + again_after_ * (id.value() % kSpread) / 64;
  }
  check.done();
}

Task<bool> ParityCheck::Inquire(Inquiry& inquiry) {
  if (inquiry.engine == EngineKind::kTrtllm) {
    inquiry.report.verdicts.fill(ParityVerdict::kCannotAsk);
    co_return true;
  }
  auto choosing = ChooseBuild(inquiry);
  co_await choosing;
  inquiry.subject.build = builds_.Choose(inquiry.subject.files);
  const auto probes = ParityProbesFor(*inquiry.subject.files, inquiry.Manner({}));
  for (const ParityProbe& probe : probes) {
    if (inquiry.check.outdated) co_return false;
    if (GetsIds(inquiry, probe)) continue;
    auto comparing = CompareOnce(inquiry, probe);
    Outcome outcome = co_await comparing;
    if (outcome == Outcome::kDiffers) {
      auto comparing_again = CompareOnce(inquiry, probe);
      outcome = co_await comparing_again;
    }
    outcomes_[static_cast<size_t>(outcome)]->Add();
    if (outcome == Outcome::kUnanswered) co_return false;
    if (outcome == Outcome::kUnsupported) {
      inquiry.report.verdicts.fill(ParityVerdict::kCannotAsk);
      co_return true;
    }
    inquiry.Note(KindOf(probe.Parts()), outcome);
  }
  // It has refused every question, or its answers prove nothing.
  ParityVerdicts& verdicts = inquiry.report.verdicts;
  const auto unknown = [](ParityVerdict verdict) { return verdict == ParityVerdict::kUnknown; };
  if (std::ranges::all_of(verdicts, unknown)) verdicts.fill(ParityVerdict::kCannotAsk);
  co_return true;
}

bool ParityCheck::GetsIds(const Inquiry& inquiry, const ParityProbe& probe) const {
  const bool chat = probe.api == kInChats;
  if (!forwards_ids_ || inquiry.subject.found) return false;
  if (!chat && probe.api != kInCompletions) return false;
  const auto fields = ReadRequestFields(probe.body);
  const Route route = chat ? Route::kChat : Route::kCompletions;
  return fields && TakesTokenIds(inquiry.engine, route, *fields);
}

// If the model has two builds, and it is not known yet which one its engines use.
Task<void> ParityCheck::ChooseBuild(Inquiry& inquiry) {
  const LanguageModel& files = *inquiry.subject.files;
  if (!builds_.ShouldAsk(files, loop_.now())) co_return;
  ParityProbe probe{kInCompletions, "{\"prompt\":"};
  AppendJsonString(probe.body, files.telling_text());
  probe.body += '}';
  const PromptFields parts = probe.Parts();
  auto asking = AskForTokens(inquiry, probe, parts);
  const TokenAnswer answer = co_await asking;
  if (answer) builds_.Hear(files, inquiry.subject.model(), *answer);
}

Task<ParityCheck::Outcome> ParityCheck::CompareOnce(Inquiry& inquiry, const ParityProbe& probe) {
  const PromptFields parts = probe.Parts();
  const auto ours = TokensByFiles(*inquiry.subject.build, parts, inquiry.Manner(parts));
  if (!ours) co_return Outcome::kInconclusive;
  auto asking = AskForTokens(inquiry, probe, parts);
  const TokenAnswer theirs = co_await asking;
  if (!theirs) {
    switch (theirs.error()) {
      case TokenFailure::kUnsupported:
        co_return inquiry.answered ? Outcome::kInconclusive : Outcome::kUnsupported;
      case TokenFailure::kRefused:
        co_return Outcome::kInconclusive;
      default:
        co_return Outcome::kUnanswered;
    }
  }
  inquiry.answered = true;
  if (const auto difference = FirstDifference(*ours, *theirs)) {
    inquiry.difference = *difference;
    inquiry.difference.model = inquiry.subject.model();
    co_return Outcome::kDiffers;
  }
  if (inquiry.renders.value_or(false) || parts.api == PromptApi::kChat) co_return Outcome::kAgrees;
  // The router converted the request; the engine may do so in another way.
  if (parts.api == PromptApi::kResponses) co_return Outcome::kInconclusive;
  auto counting = CompareCounts(inquiry, probe, ours->size());
  const Outcome outcome = co_await counting;
  co_return outcome;
}

Task<ParityCheck::Outcome> ParityCheck::CompareCounts(Inquiry& inquiry, const ParityProbe& probe,
                                                      size_t ours) {
  const std::string body = WithModel(inquiry.subject.model(), "", probe);
  auto posting = calls_.Post(inquiry.worker(), "/v1/messages/count_tokens", body, kMaxAnswer,
                             loop_.now() + kPatience);
  const auto answer = co_await posting;
  if (!answer) co_return Outcome::kUnanswered;
  const auto count = answer->status == 200 ? ReadCount(answer->body) : std::nullopt;
  if (!count) co_return Outcome::kInconclusive;
  if (*count == ours) co_return Outcome::kAgrees;
  inquiry.difference = {.model = inquiry.subject.model()};
  inquiry.difference.our_count = static_cast<uint32_t>(ours);
  inquiry.difference.their_count = static_cast<uint32_t>(std::min<uint64_t>(*count, ~uint32_t{0}));
  co_return Outcome::kDiffers;
}

Task<TokenAnswer> ParityCheck::AskForTokens(Inquiry& inquiry, const ParityProbe& probe,
                                            const PromptFields& parts) {
  const bool may_render = inquiry.engine == EngineKind::kVllm && !inquiry.subject.model().empty();
  if (may_render && inquiry.renders.value_or(true)) {
    auto rendering = AskForRendering(inquiry, probe);
    TokenAnswer rendered = co_await rendering;
    const bool late = !rendered && rendered.error() == TokenFailure::kTimeout;
    if (inquiry.renders || rendered || late) {
      if (rendered) inquiry.renders = true;
      co_return rendered;
    }
    inquiry.renders = false;
  }
  TokenQuestion question;
  question.model = inquiry.subject.model();
  question.parts = parts;
  question.engine = inquiry.engine;
  if (inquiry.engine == EngineKind::kSglang) question.reasoning_parser = inquiry.reasoning_parser;
  const auto body = WriteTokenizeBody(question);
  if (!body) co_return std::unexpected(TokenFailure::kRefused);
  auto posting =
      calls_.Post(inquiry.worker(), "/tokenize", *body, kMaxAnswer, loop_.now() + kPatience);
  const auto answer = co_await posting;
  if (!answer) co_return std::unexpected(TokenFailure::kTimeout);
  TokenAnswer tokens = ReadTokenizeAnswer(*answer);
  // Some servers' /tokenize expects another body and finds no text in ours.
  if (tokens && tokens->empty()) co_return std::unexpected(TokenFailure::kUnsupported);
  co_return tokens;
}

Task<TokenAnswer> ParityCheck::AskForRendering(Inquiry& inquiry, const ParityProbe& probe) {
  const std::string_view more = probe.api == kInMessages ? ",\"max_tokens\":1" : "";
  const std::string body = WithModel(inquiry.subject.model(), more, probe);
  auto posting = calls_.Post(inquiry.worker(), RenderPath(probe.api), body, kMaxAnswer,
                             loop_.now() + kPatience);
  const auto answer = co_await posting;
  if (!answer) co_return std::unexpected(TokenFailure::kTimeout);
  if (answer->status == 200) co_return ReadRendering(answer->body);
  co_return std::unexpected(answer->status >= 500 ? TokenFailure::kError : TokenFailure::kRefused);
}

}  // namespace fathom
