// A chat template: the subset of Jinja that the templates of models use, with the meaning that
// Python's jinja2 gives it in transformers (trim_blocks, lstrip_blocks, loop controls, an immutable
// sandbox, tojson without escapes).
//
//   TRY(const Template greeting, Template::Parse("Hello {{ name | trim }}!"));
//   TRY(const std::string text, greeting.Render(values, {.now = ...}));
//
// Errors   kCaller. Parse() names what it does not know, with its line: such a template is not
//          used at all. Render() fails where jinja2 would raise ("line 3: ..."), at the limits, and
//          where the template calls raise_exception ("the template raised an error: " and its
//          words); the cause tells which. Nothing of the values is in the text of an error, unless
//          the template puts it there.
// Memory   Bounded by the limits, whatever the values are.
// Threads  A template is immutable once parsed; any number may render it at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/jinja/render_budget.h"
#include "text/jinja/value.h"

namespace fathom {

struct RenderOptions {
  RenderLimits limits;
  int64_t now = 0;  // seconds since 1970, in UTC, for strftime_now
};

struct RenderFailure : Error {
  enum class Cause : uint8_t {
    kFailed,
    kRefused,    // by the template itself, with raise_exception
    kOverdrawn,  // a limit is reached; a larger one may help
  };
  Cause cause = Cause::kFailed;
};

class Template {
 public:
  static constexpr size_t kMaxSource = size_t{1} << 20;
  static constexpr uint32_t kMaxDepth = 100;  // of expressions and blocks in each other

  static Result<Template> Parse(std::string_view source);

  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  // `globals` are the names that the template can use.
  std::expected<std::string, RenderFailure> Render(const TemplateDict& globals,
                                                   const RenderOptions& options) const;

  // Whether a loop runs over the parts of a message's content ({% for part in message.content %}):
  // then the content is passed on as a list; otherwise as one text.
  bool loops_over_content() const;

 private:
  struct Program;
  explicit Template(std::unique_ptr<const Program> program);

  std::unique_ptr<const Program> program_;
};

}  // namespace fathom
