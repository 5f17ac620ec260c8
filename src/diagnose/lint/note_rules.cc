// block-size-note: does a page that sets a block size say what it must match?
//
// A reader with another backend copies the number, and routing by cache stops without an error. So
// the page must say beside the example which number belongs to which backend.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "diagnose/lint/remedy.h"
#include "diagnose/lint/rules.h"
#include "diagnose/manifest/markdown.h"

namespace fathom {
namespace {

constexpr std::string_view kNote =
    "# Must match the backend's tokens_per_block. vLLM default: 16, TRT-LLM default: 32.";
// The router's settings; --block-size of an engine decides by itself.
constexpr std::string_view kSettings[] = {"DYN_KV_CACHE_BLOCK_SIZE", "FATHOM_KV_CACHE_BLOCK_SIZE",
                                          "DYN_ROUTER_BLOCK_SIZE",   "--kv-cache-block-size",
                                          "--router-block-size",     "kv-cache-block-size",
                                          "kv_cache_block_size",     "block_size="};
constexpr size_t kBefore = 8;  // lines around a block in which its note may stand
constexpr size_t kBehind = 6;

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

bool IsPage(std::string_view name) {
  const std::string lower = LowerCase(name);
  return lower.ends_with(".md") || lower.ends_with(".mdx") || lower.ends_with(".markdown");
}

bool IsWordByte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '"';
}

// The number that follows: "=16", ": \"16\"", " 16", and on the next line "value: \"16\"".
struct Number {
  uint64_t value = 0;
  size_t end = 0;  // in the text
};

std::optional<Number> NumberBehind(std::string_view text, size_t at) {
  size_t digits = std::min(text.find_first_not_of(" =:\"'", at), text.size());
  if (digits < text.size() && (text[digits] == '\n' || text[digits] == '\r')) {
    digits = std::min(text.find_first_not_of(" \r\n", digits), text.size());
    constexpr std::string_view kValue = "value:";
    if (!text.substr(digits).starts_with(kValue)) return std::nullopt;
    digits = std::min(text.find_first_not_of(" \"'", digits + kValue.size()), text.size());
  }
  const size_t end = std::min(text.find_first_not_of("0123456789", digits), text.size());
  const auto value = ParseDecimal(text.substr(digits, end - digits));
  if (!value || *value == 0) return std::nullopt;  // 0: found out
  if (end < text.size() && (IsWordByte(text[end]) && text[end] != '"')) return std::nullopt;
  return Number{*value, end};
}

struct FoundSize {
  std::string name;
  size_t at = 0;   // in the block
  size_t end = 0;  // of the number
  uint64_t value = 0;
};

std::optional<FoundSize> SizeAt(std::string_view text, size_t at) {
  for (const std::string_view name : kSettings) {
    if (!text.substr(at).starts_with(name)) continue;
    const size_t end = at + name.size();
    if (at > 0 && IsWordByte(text[at - 1]) && text[at - 1] != '"') continue;
    if (end < text.size() && IsWordByte(text[end]) && text[end] != '"' && !name.ends_with('=')) {
      continue;
    }
    if (const auto number = NumberBehind(text, end)) {
      return FoundSize{std::string(name.substr(0, name.find('='))), at, number->end, number->value};
    }
  }
  return std::nullopt;
}

std::vector<FoundSize> SizesIn(std::string_view text) {
  constexpr size_t kMaxSizes = 100;
  std::vector<FoundSize> sizes;
  for (size_t at = 0; at < text.size() && sizes.size() < kMaxSizes;) {
    const bool candidate =
        text[at] == 'D' || text[at] == 'F' || text[at] == '-' || text[at] == 'k' || text[at] == 'b';
    const auto size = candidate ? SizeAt(text, at) : std::nullopt;
    if (size) sizes.push_back(*size);
    at = size ? size->end : at + 1;
  }
  return sizes;
}

// The block with some lines around it.
std::string_view Around(std::string_view page, size_t begin, size_t end) {
  size_t first = begin;
  for (size_t i = 0; i < kBefore && first > 0; ++i) {
    const size_t line = first < 2 ? page.npos : page.rfind('\n', first - 2);
    first = line == page.npos ? 0 : line + 1;
  }
  size_t last = end;
  for (size_t i = 0; i < kBehind && last < page.size(); ++i) {
    last = std::min(page.find('\n', last), page.size() - 1) + 1;
  }
  return page.substr(first, last - first);
}

bool Mentions(std::string_view text, std::initializer_list<std::string_view> names,
              std::string_view number) {
  constexpr size_t kNear = 40;  // "TensorRT-LLM's default is 32"
  for (const std::string_view name : names) {
    for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
      if (text.substr(at + name.size(), kNear).contains(number)) return true;
    }
  }
  return false;
}

// Both defaults, or that of the one backend that the number is for.
bool HasNote(std::string_view around, uint64_t value) {
  const std::string text = LowerCase(around);
  if (!text.contains("match")) return false;
  const bool trtllm = Mentions(text, {"trt-llm", "tensorrt-llm", "trtllm"}, "32");
  const bool vllm = Mentions(text, {"vllm"}, "16");
  const bool own = value == 32 ? trtllm : value == 16 && vllm;
  return (trtllm && vllm) || (own && text.contains("default"));
}

bool TakesComments(std::string_view language) {
  constexpr std::string_view kLanguages[] = {"yaml", "yml",  "python", "py",
                                             "toml", "bash", "sh",     "shell"};
  return std::ranges::find(kLanguages, LowerCase(language)) != std::end(kLanguages);
}

// A line below the number; nothing inside a command that goes on over several lines.
std::vector<TextEdit> AddNote(const FencedBlock& block, const FoundSize& size) {
  const std::string_view text = block.text.text();
  const size_t end = text.find('\n', size.end);
  const size_t newline = text.rfind('\n', size.end - 1);  // behind a digit
  const size_t start = newline == text.npos ? 0 : newline + 1;
  const bool continued = start > 1 && Trim(text.substr(0, start - 1)).ends_with('\\');
  if (end == text.npos || !block.text.verbatim() || !TakesComments(block.language) || continued ||
      Trim(text.substr(start, end - start)).ends_with('\\')) {
    return {};
  }
  const size_t indent = std::min(text.find_first_not_of(' ', start), end) - start;
  const std::string line = fmt::format("{}{}\n", std::string(indent, ' '), kNote);
  return {{block.text.file().name, {block.text.OffsetOf(end) + 1, 0}, line}};
}

void CheckBlock(const Plan& plan, const SourceFile& page, const FencedBlock& block,
                LintFindings& findings) {
  const size_t begin = block.text.OffsetOf(0);
  const std::string_view around = Around(page.text, begin, begin + block.text.text().size());
  for (const FoundSize& size : SizesIn(block.text.text())) {
    if (HasNote(around, size.value)) continue;
    Finding finding =
        MakeFinding(FindingId::kBlockSizeNote, "",
                    fmt::format("The page sets {} to {} and does not say what it must match",
                                size.name, size.value));
    finding.why =
        "A reader with another backend copies the number: then no cached prefix is ever found, and "
        "no error is reported.";
    finding.place = block.text.PlaceOf(size.at);
    Remedy remedy;
    remedy.fix.what = "Add a note beside the setting: what it must match, and each default.";
    remedy.fix.setting = kNote;
    remedy.fix.cost = "None.";
    remedy.fix.verify = "fathom lint has no finding for the page.";
    remedy.edits = AddNote(block, size);
    findings.push_back(WithRemedies(plan, std::move(finding), {std::move(remedy)}));
  }
}

}  // namespace

void CheckNotes(const Plan& plan, LintFindings& findings) {
  for (const SourceFile& file : plan.files()) {
    if (!IsPage(file.name)) continue;
    for (const FencedBlock& block : FencedBlocks(Passage(file))) {
      CheckBlock(plan, file, block, findings);
    }
  }
}

}  // namespace fathom
