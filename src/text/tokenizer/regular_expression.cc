#include "text/tokenizer/regular_expression.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "text/tokenizer/onig_syntax.h"
#include "text/unicode/utf8.h"

namespace fathom {
namespace {

constexpr uint32_t kMatchLimit = 10'000'000;
constexpr uint32_t kDepthLimit = 100'000;
constexpr uint32_t kHeapLimit = 64 << 10;  // in KiB
constexpr size_t kStack = size_t{8} << 20;

template <auto kFree>
struct Freed {
  void operator()(auto* p) const { kFree(p); }
};
using CodePtr = std::unique_ptr<pcre2_code, Freed<pcre2_code_free>>;
using CompileContextPtr = std::unique_ptr<pcre2_compile_context, Freed<pcre2_compile_context_free>>;
using MatchContextPtr = std::unique_ptr<pcre2_match_context, Freed<pcre2_match_context_free>>;
using MatchDataPtr = std::unique_ptr<pcre2_match_data, Freed<pcre2_match_data_free>>;
using StackPtr = std::unique_ptr<pcre2_jit_stack, Freed<pcre2_jit_stack_free>>;

std::string MessageOf(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

PCRE2_SPTR Units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

}  // namespace

struct RegularExpression::Code {
  CodePtr code;
};

RegularExpression::RegularExpression(std::unique_ptr<const Code> code) : code_(std::move(code)) {}
RegularExpression::~RegularExpression() = default;
RegularExpression::RegularExpression(RegularExpression&&) noexcept = default;
RegularExpression& RegularExpression::operator=(RegularExpression&&) noexcept = default;

Result<RegularExpression> RegularExpression::Compile(std::string_view onig_pattern) {
  if (onig_pattern.size() > kMaxPattern) return Fail(Blame::kCaller, "an expression is too long");
  TRY(const std::string pattern, PcreOfOnig(onig_pattern));
  const CompileContextPtr context(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  size_t offset = 0;
  // Lines begin and end at ^ and $ whether asked for or not, as in Ruby.
  CodePtr code(pcre2_compile(
      Units(pattern), pattern.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
      &error, &offset, context.get()));
  if (!code) return Fail(Blame::kCaller, "an expression is invalid: {}", MessageOf(error));
  if (pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE) != 0) {
    return Fail(Blame::kCaller, "an expression cannot be compiled to machine code");
  }
  return RegularExpression(std::make_unique<const Code>(std::move(code)));
}

Result<void> RegularExpression::FindAll(std::string_view text, std::vector<TextSpan>& out) const {
  const MatchContextPtr context(pcre2_match_context_create(nullptr));
  const StackPtr stack(pcre2_jit_stack_create(size_t{32} << 10, kStack, nullptr));
  const MatchDataPtr data(pcre2_match_data_create_from_pattern(code_->code.get(), nullptr));
  pcre2_set_match_limit(context.get(), kMatchLimit);
  pcre2_set_depth_limit(context.get(), kDepthLimit);
  pcre2_set_heap_limit(context.get(), kHeapLimit);
  pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  size_t last_end = text.size() + 1;  // nowhere yet
  for (size_t from = 0; from <= text.size();) {
    const int found = pcre2_match(code_->code.get(), Units(text), text.size(), from, 0, data.get(),
                                  context.get());
    if (found == PCRE2_ERROR_NOMATCH) return {};
    if (found < 0) return Fail(Blame::kCaller, "an expression gave up: {}", MessageOf(found));
    const size_t* match = pcre2_get_ovector_pointer(data.get());
    if (match[0] == match[1] && match[1] == last_end) {
      from += from < text.size() ? FirstCodePoint(text.substr(from)).length : 1;
      continue;
    }
    out.push_back({match[0], match[1]});
    from = last_end = match[1];
  }
  return {};
}

}  // namespace fathom
