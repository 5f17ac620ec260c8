// A model's chat template, and the prompt that a chat becomes with it.
//
// Threads  Immutable once parsed.
// Memory   What a prompt takes is bounded by the template's limits.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/jinja/template.h"
#include "text/model/chat_request.h"

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
    int64_t now = 0;                      // seconds since 1970, as clocks show them there
    RenderLimits limits = {};
  };
  RenderedChat Render(const ChatFields& chat, const Occasion& occasion) const;

 private:
  ChatTemplate(Template parsed, bool media, bool developer)
      : template_(std::move(parsed)), media_(media), developer_(developer) {}

  bool WantsParts(ChatDialect dialect) const;

  RenderedChat RenderPrepared(PreparedChat prepared, TemplateDict globals, bool continues,
                              const RenderOptions& options) const;

  Template template_;
  bool media_;      // it speaks of images, audio or video
  bool developer_;  // it names that role
};

}  // namespace fathom
