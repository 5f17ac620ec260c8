// The scanner must accept and refuse the same documents as a full parser (simdjson), and find the
// same members. Simplified() and MayAccept() describe the intended differences.
#include <simdjson.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "codec/json_scan.h"

namespace fathom {
namespace {

using Members = std::vector<JsonScanner::Member>;

std::optional<Members> Scan(std::string_view document) {
  Members members;
  JsonScanner scanner(document);
  for (;;) {
    const auto member = scanner.Next();
    if (!member) {
      CHECK(!scanner.Next());  // the error is permanent
      return std::nullopt;
    }
    if (!*member) return members;
    members.push_back(**member);
  }
}

bool HasSurrogateEscape(std::string_view text) {
  for (size_t at = 0; (at = text.find("\\u", at)) != text.npos; at += 2) {
    if (text.size() - at > 3 && (text[at + 2] | 0x20) == 'd') return true;
  }
  return false;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

size_t TakeDigits(std::string_view& text) {
  const size_t digits = std::ranges::find_if_not(text, IsDigit) - text.begin();
  text.remove_prefix(digits);
  return digits;
}

bool IsNumber(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const bool zero = text.starts_with('0');
  const size_t whole = TakeDigits(text);
  if (whole == 0 || (zero && whole > 1)) return false;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (TakeDigits(text) == 0) return false;
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
    if (TakeDigits(text) == 0) return false;
  }
  return text.empty();
}

// The document without the two properties that the scanner does not check: UTF-8 (bytes above ASCII
// become 'x') and the size of numbers (well-formed ones become 0).
std::string Simplified(std::string_view in) {
  std::string out;
  bool in_string = false;
  while (!in.empty()) {
    const size_t number = std::min(in.find_first_not_of("0123456789+-.eE"), in.size());
    if (!in_string && (IsDigit(in[0]) || in[0] == '-') && IsNumber(in.substr(0, number))) {
      out += '0';
      in.remove_prefix(number);
      continue;
    }
    if (in[0] == '"') in_string = !in_string;
    const size_t length = in_string && in[0] == '\\' && in.size() > 1 ? 2 : 1;
    for (const char c : in.substr(0, length)) out += static_cast<signed char>(c) < 0 ? 'x' : c;
    in.remove_prefix(length);
  }
  return out;
}

// Whether we may accept a document that the other parser refused with `error`. It also refuses lone
// surrogates, which the grammar allows.
bool MayAccept(std::string_view document, simdjson::error_code error) {
  if (error == simdjson::STRING_ERROR) return HasSurrogateEscape(document);
  if (error != simdjson::UTF8_ERROR && error != simdjson::NUMBER_ERROR) return false;
  const std::string simplified = Simplified(document);
  simdjson::dom::parser parser;
  const simdjson::error_code again = parser.parse(simplified).error();
  return !again || (again == simdjson::STRING_ERROR && HasSurrogateEscape(document));
}

size_t DepthOf(const simdjson::dom::element element) {
  size_t deepest = 0;
  if (element.is_array()) {
    for (const auto item : element.get_array().value_unsafe()) {
      deepest = std::max(deepest, DepthOf(item));
    }
    return deepest + 1;
  }
  if (element.is_object()) {
    for (const auto& [key, item] : element.get_object().value_unsafe()) {
      deepest = std::max(deepest, DepthOf(item));
    }
    return deepest + 1;
  }
  return 0;
}

// The elements of an array, walked and parsed, in number and text.
void CompareElements(std::string_view raw, const simdjson::dom::array& theirs) {
  JsonElements ours(raw);
  simdjson::dom::parser parser;
  for (const simdjson::dom::element element : theirs) {
    const std::optional<std::string_view> next = ours.Next();
    CHECK(next);
    simdjson::dom::element parsed;
    CHECK(!parser.parse(next->data(), next->size()).get(parsed));
    CHECK(simdjson::minify(parsed) == simdjson::minify(element));
  }
  CHECK(!ours.Next());
}

void CompareMember(const JsonScanner::Member& ours, std::string_view key,
                   simdjson::dom::element value) {
  // It returns lone low surrogates as bytes that are not UTF-8; we return no text for them.
  if (!HasSurrogateEscape(ours.key)) CHECK(JsonKeyIs(ours.key, key));
  simdjson::dom::parser parser;
  simdjson::dom::element parsed;
  CHECK(!parser.parse(ours.value.data(), ours.value.size()).get(parsed));
  CHECK(simdjson::minify(parsed) == simdjson::minify(value));
  if (value.is_array()) CompareElements(ours.value, value.get_array().value_unsafe());
  const std::optional<std::string> text = JsonText(ours.value);
  if (!value.is_string()) {
    CHECK(!text);
  } else if (!HasSurrogateEscape(ours.value)) {
    CHECK(text == std::string(value.get_string().value_unsafe()));
  }
}

void Compare(const Members& ours, const simdjson::dom::object& theirs) {
  size_t i = 0;
  for (const auto& [key, value] : theirs) {
    CHECK(i < ours.size());
    CompareMember(ours[i++], key, value);
  }
  CHECK(i == ours.size());
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  // A separate copy, so that a sanitizer detects reads past the end.
  const std::vector<char> copy(data, data + size);
  const std::string_view in(copy.data(), copy.size());
  const std::optional<Members> ours = Scan(in);
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  // It copies from the null pointer of an empty view.
  const simdjson::error_code error =
      in.empty() ? simdjson::EMPTY : parser.parse(in.data(), in.size()).get(root);
  if (error) {
    CHECK(!ours || MayAccept(in, error));
  } else if (!root.is_object() || DepthOf(root) > JsonScanner::kMaxDepth) {
    CHECK(!ours);
  } else {
    CHECK(ours);
    Compare(*ours, root.get_object().value_unsafe());
  }
  return 0;
}
