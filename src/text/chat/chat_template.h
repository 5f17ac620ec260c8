// A model's chat template, and the prompt that a chat becomes with it.
//
// Threads  Immutable once parsed.
// Memory   What a prompt takes is bounded by the template's limits.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/chat/chat_request.h"
#include "text/chat/engine_habits.h"
#include "text/jinja/template.h"

namespace fathom {

// The text of a chat, as far as it is known.
struct RenderedChat {
  std::string text;
  std::optional<Inexact> inexact;  // then more follows, or nothing is known
  std::string problem;             // in words, where there is no text at all
  bool overdrawn = false;          // a limit was reached: there may be a text within larger ones
};

class ChatTemplate {
 public:
  static Result<ChatTemplate> Parse(std::string_view source);

  struct Occasion {
    ChatDialect dialect = ChatDialect::kVllm;
    const TemplateDict* roles = nullptr;  // "bos_token" and the like
    const TextFilter* filter = nullptr;   // see ChatPreparation
    // SGLang's --reasoning-parser, empty if it has none; or not known.
    std::optional<std::string_view> reasoning_parser = {};
    int64_t now = 0;  // seconds since 1970, as clocks show them there
    RenderLimits limits = {};
  };
  RenderedChat Render(const ChatFields& chat, const Occasion& occasion) const;

 private:
  explicit ChatTemplate(Template parsed) : template_(std::move(parsed)) {}

  void LookAt(std::string_view source);
  bool WantsParts(ChatDialect dialect) const;
  Result<ChatSource> Read(const ChatFields& chat, const Occasion& occasion) const;
  EngineHabits HabitsOf(const ChatFields& chat, const Occasion& occasion) const;
  bool HearsNoEffort(const Occasion& occasion) const;
  bool TryNoEffort(const Occasion& occasion) const;

  RenderedChat RenderSource(const ChatSource& chat, const Occasion& occasion) const;
  RenderedChat RenderPrepared(PreparedChat prepared, TemplateDict globals, bool continues,
                              const RenderOptions& options) const;

  Template template_;
  bool media_ = false;                  // it speaks of images, audio or video
  bool developer_ = false;              // it names that role
  bool tools_ = false;                  // it speaks of tools, or of thoughts
  bool refuses_inline_system_ = false;  // system messages between the others
  bool drops_inline_system_ = false;    // or leaves them out
  std::string_view thinking_argument_;  // turns thinking on and off
  // Found out when it is first asked for: -1 until then. Relaxed: every thread finds the same.
  std::unique_ptr<std::atomic<int8_t>> hears_no_effort_ =
      std::make_unique<std::atomic<int8_t>>(int8_t{-1});
};

}  // namespace fathom
