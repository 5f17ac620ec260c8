// How does this model turn a chat, or a text, into tokens? Its tokenizer, its chat templates and
// its special tokens.
//
// Errors   Load(): kCaller where files are missing or broken; kPeer where they are well, but need
//          something that is not supported here, so that the engine has to be asked.
//          A template that cannot be used is none of these: texts work all the same.
// Threads  Any. Encoders are lent, one to a thread.
// Memory   Tens of MiB per model, and about 1 MiB per encoder.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/chat/chat_template.h"
#include "text/model/model_files.h"
#include "text/model/prompt_parts.h"
#include "text/tokenizer/tokenizer.h"

namespace fathom {

// A prompt in words, or as much of it as is known.
struct RenderedPrompt {
  PromptText prompt;
  std::optional<Inexact> inexact;
  std::string problem;     // in words, where nothing is known
  bool overdrawn = false;  // a limit was reached: more may be known within larger ones
};

class LanguageModel {
 public:
  static Result<std::shared_ptr<const LanguageModel>> Load(const ModelPaths& paths);
  static Result<std::shared_ptr<const LanguageModel>> Parse(const ModelFiles& files);

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  // The same model with the pipeline of tokenizer.json, where this one has that of a class and
  // their tokens differ; else null. Which one an engine has depends on its version of transformers.
  const std::shared_ptr<const LanguageModel>& by_file() const { return by_file_; }
  // A text whose tokens show it.
  std::string_view telling_text() const { return telling_text_; }
  // Which tokenizer it is, whatever the model is called.
  const TextKey& fingerprint() const { return fingerprint_; }
  // Why chats cannot be rendered; empty if they can.
  const std::string& template_problem() const { return template_problem_; }

  struct Manner {
    ChatDialect dialect = ChatDialect::kVllm;
    bool literal_user_text = false;
    std::optional<std::string> reasoning_parser = {};  // see ChatTemplate::Occasion
    int64_t now = 0;  // seconds since 1970, as clocks show them there
    RenderLimits limits = {};
  };
  RenderedPrompt RenderChat(const ChatFields& chat, const Manner& manner) const;
  // A prompt that is a text: JSON, quotes and all.
  RenderedPrompt RenderText(std::string_view json, std::string_view add_special_tokens,
                            ChatDialect dialect = ChatDialect::kVllm) const;

  // An encoder, until it is let go of. The model must outlive it.
  class Lease {
   public:
    Lease(const LanguageModel& model, std::unique_ptr<Encoder> encoder)
        : model_(model), encoder_(std::move(encoder)) {}
    ~Lease() {
      if (encoder_) model_.Return(std::move(encoder_));
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    Encoder& operator*() const { return *encoder_; }
    // It has grown: the next one who borrows gets another.
    void Drop() { encoder_.reset(); }

   private:
    const LanguageModel& model_;
    std::unique_ptr<Encoder> encoder_;
  };
  Lease Borrow() const;

 private:
  LanguageModel() = default;

  enum class Build : uint8_t { kByClass, kByFile };
  static Result<std::shared_ptr<LanguageModel>> ParseAs(const ModelFiles& files, Build build);
  Result<void> ReadTokenizer(const ModelFiles& files, Build build);
  void FindTellingText();
  Result<void> ReadConfig(const ModelFiles& files, std::vector<AddedToken>& added);
  Result<void> NameBos(const ModelFiles& files);
  Result<void> ReadType(const ModelFiles& files);
  void UseTemplates(const ModelFiles& files);
  const ChatTemplate* TemplateFor(const ChatFields& chat, ChatDialect dialect) const;
  std::string_view WhyNotHere(const ChatFields& chat, ChatDialect dialect) const;
  void Return(std::unique_ptr<Encoder> encoder) const;

  std::unique_ptr<const Tokenizer> tokenizer_;
  TextKey fingerprint_;
  TemplateDict roles_;
  std::vector<std::pair<std::string, std::string>> sources_;  // of the templates
  // By name; nothing where one cannot be used.
  std::vector<std::pair<std::string, std::optional<ChatTemplate>>> templates_;
  std::string template_problem_;
  std::string model_type_;
  std::optional<LlamaPipeline> class_pipeline_;
  std::shared_ptr<const LanguageModel> by_file_;
  std::string_view telling_text_;
  bool says_bos_ = false;     // which token begins a prompt, or that none does
  mutable std::mutex mutex_;  // guards encoders_
  mutable std::vector<std::unique_ptr<Encoder>> encoders_;
};

}  // namespace fathom
