#include "text/model/language_model.h"

#include <algorithm>
#include <utility>

#include "codec/json.h"
#include "codec/json_scan.h"
#include "text/model/literal_text.h"
#include "text/model/tokenizer_config.h"
#include "text/unicode/utf8.h"

namespace fathom {
namespace {

// More would be held for threads that came once.
constexpr size_t kMostEncoders = 64;

// The builds of a tokenizer differ in what they do with spaces at the beginning, and behind special
// tokens.
constexpr std::string_view kTellingTexts[] = {"depth",  " depth",   "  how deep", "</s> depth",
                                              "\n how", "<s>depth", "deep  water"};

}  // namespace

Result<std::shared_ptr<const LanguageModel>> LanguageModel::Load(const ModelPaths& paths) {
  TRY(const ModelFiles files, ReadModelFiles(paths));
  return Parse(files);
}

Result<std::shared_ptr<const LanguageModel>> LanguageModel::Parse(const ModelFiles& files) {
  TRY(std::shared_ptr<LanguageModel> model, ParseAs(files, Build::kByClass));
  if (model->class_pipeline_) {
    TRY(model->by_file_, ParseAs(files, Build::kByFile));
    model->FindTellingText();
  }
  return std::shared_ptr<const LanguageModel>(std::move(model));
}

Result<std::shared_ptr<LanguageModel>> LanguageModel::ParseAs(const ModelFiles& files,
                                                              Build build) {
  std::shared_ptr<LanguageModel> model(new LanguageModel);
  TRY_VOID(model->ReadType(files));
  TRY_VOID(model->ReadTokenizer(files, build));
  TRY_VOID(model->NameBos(files));
  model->UseTemplates(files);
  return model;
}

Result<void> LanguageModel::ReadTokenizer(const ModelFiles& files, Build build) {
  std::vector<AddedToken> added;
  TRY_VOID(ReadConfig(files, added));
  if (build == Build::kByFile) class_pipeline_.reset();
  auto tokenizer =
      Tokenizer::Parse(files.tokenizer, added, class_pipeline_ ? &*class_pipeline_ : nullptr);
  if (!tokenizer) {
    Error error = std::move(tokenizer).error();
    // The file is well; an engine's own tokenizer can read it.
    if (error.what.starts_with(Tokenizer::kNotSupported)) error.blame = Blame::kPeer;
    return std::unexpected(std::move(error).In(files.tokenizer_path));
  }
  tokenizer_ = *std::move(tokenizer);
  // Two builds of one file are two tokenizers.
  fingerprint_ = KeyOfText(files.tokenizer, build == Build::kByFile ? 0 : 1);
  return {};
}

// Without one the two builds are alike, and one of them is enough.
void LanguageModel::FindTellingText() {
  const auto encoded = [](const LanguageModel& model, std::string_view text) {
    return (*model.Borrow()).Encode(text, true);
  };
  for (const std::string_view text : kTellingTexts) {
    const auto ours = encoded(*this, text);
    const auto theirs = encoded(*by_file_, text);
    if (!ours || !theirs || *ours == *theirs) continue;
    telling_text_ = text;
    return;
  }
  by_file_.reset();
}

Result<void> LanguageModel::ReadConfig(const ModelFiles& files, std::vector<AddedToken>& added) {
  if (files.tokenizer_config.empty()) return {};
  auto config = ReadTokenizerConfig(files.tokenizer_config);
  if (!config) return std::unexpected(std::move(config).error().In("tokenizer_config.json"));
  for (auto& [name, content] : config->roles) roles_.emplace_back(name, TemplateValue(content));
  says_bos_ = config->says_bos;
  added = std::move(config->added);
  class_pipeline_ = ClassPipeline(*config, model_type_);
  sources_ = std::move(config->templates);
  return {};
}

// Where only generation_config.json knows the BOS token, as an id.
Result<void> LanguageModel::NameBos(const ModelFiles& files) {
  if (files.generation_config.empty() || says_bos_) return {};
  auto bos = ReadGenerationBos(files.generation_config);
  if (!bos) return std::unexpected(std::move(bos).error().In("generation_config.json"));
  if (!*bos) return {};
  const std::string piece = tokenizer_->Piece(**bos);
  if (!piece.empty()) roles_.emplace_back("bos_token", TemplateValue(piece));
  return {};
}

Result<void> LanguageModel::ReadType(const ModelFiles& files) {
  if (files.config.empty()) return {};
  auto config = Json::ParseWithLargeNumbers(files.config);
  if (!config) return std::unexpected(std::move(config).error().In("config.json"));
  const Json* const type = config->Find("model_type");
  if (type != nullptr && type->string() != nullptr) model_type_ = *type->string();
  return {};
}

void LanguageModel::UseTemplates(const ModelFiles& files) {
  // A file of its own is the newer place.
  if (!files.chat_template.empty()) sources_ = {{"default", files.chat_template}};
  if (sources_.empty()) template_problem_ = "there is no chat template";
  for (const auto& [name, source] : sources_) {
    auto parsed = ChatTemplate::Parse(source);
    if (!parsed) {
      template_problem_ = std::move(parsed).error().In("chat template '" + name + "'").what;
      templates_.emplace_back(name, std::nullopt);
    } else {
      templates_.emplace_back(name, *std::move(parsed));
    }
  }
}

// Of several templates one is for tools. SGLang takes the first, whatever it is for.
const ChatTemplate* LanguageModel::TemplateFor(const ChatFields& chat, ChatDialect dialect) const {
  const auto find = [&](std::string_view name) {
    return std::ranges::find(templates_, name, [](const auto& entry) { return entry.first; });
  };
  auto found = chat.tools.empty() ? templates_.end() : find("tool_use");
  if (found == templates_.end()) found = find("default");
  if (dialect == ChatDialect::kSglang) found = templates_.begin();
  return found != templates_.end() && found->second ? &*found->second : nullptr;
}

// Some engines have code of their own for the chats of some models.
std::string_view LanguageModel::WhyNotHere(const ChatFields& chat, ChatDialect dialect) const {
  if (TemplateFor(chat, dialect) == nullptr) return template_problem_;
  const bool harmony = model_type_ == "gpt_oss" && dialect != ChatDialect::kSglang;
  const bool own =
      model_type_ == "deepseek_v32" || model_type_ == "deepseek_v4" || model_type_ == "kimi_k3";
  return harmony || own ? "the engine formats the chats of this model with its own code, not "
                          "with a template"
                        : "";
}

RenderedPrompt LanguageModel::RenderChat(const ChatFields& chat, const Manner& manner) const {
  RenderedPrompt out;
  out.problem = WhyNotHere(chat, manner.dialect);
  if (!out.problem.empty() || !chat.chat_template.empty()) {
    out.inexact = out.problem.empty() ? Inexact::kOwnTemplate : Inexact::kNoTemplate;
    if (out.problem.empty()) out.problem = "the request has a template of its own";
    out.prompt.whole = false;
    return out;
  }
  const ChatTemplate* const chat_template = TemplateFor(chat, manner.dialect);
  const LiteralText literal(*tokenizer_);
  RenderedChat rendered =
      chat_template->Render(chat, {.dialect = manner.dialect,
                                   .roles = &roles_,
                                   .filter = manner.literal_user_text ? &literal : nullptr,
                                   .reasoning_parser = manner.reasoning_parser,
                                   .now = manner.now,
                                   .limits = manner.limits});
  out.prompt.text = std::move(rendered.text);
  out.prompt.whole = !rendered.inexact;
  // vLLM tokenizes what it has rendered of a Responses request as if it were a text.
  const bool as_text = chat.api == PromptApi::kResponses && manner.dialect == ChatDialect::kVllm;
  out.prompt.add_special = chat.add_special_tokens == "true" || as_text;
  out.prompt.literal_marks = manner.literal_user_text;
  out.inexact = rendered.inexact;
  out.problem = std::move(rendered.problem);
  out.overdrawn = rendered.overdrawn;
  return out;
}

RenderedPrompt LanguageModel::RenderText(std::string_view json, std::string_view add_special_tokens,
                                         ChatDialect dialect) const {
  RenderedPrompt out;
  auto text = JsonText(json);
  if (!text || FindNotUtf8(*text) != std::string::npos) {
    out.inexact = Inexact::kNotAPrompt;
    out.problem = "the prompt is not a text";
    out.prompt.whole = false;
    return out;
  }
  out.prompt.text = *std::move(text);
  // SGLang has no such field.
  out.prompt.add_special = add_special_tokens != "false" || dialect == ChatDialect::kSglang;
  return out;
}

LanguageModel::Lease LanguageModel::Borrow() const {
  {
    const std::lock_guard lock(mutex_);
    if (!encoders_.empty()) {
      std::unique_ptr<Encoder> encoder = std::move(encoders_.back());
      encoders_.pop_back();
      return {*this, std::move(encoder)};
    }
  }
  return {*this, std::make_unique<Encoder>(*tokenizer_)};
}

void LanguageModel::Return(std::unique_ptr<Encoder> encoder) const {
  const std::lock_guard lock(mutex_);
  if (encoders_.size() < kMostEncoders) encoders_.push_back(std::move(encoder));
}

}  // namespace fathom
