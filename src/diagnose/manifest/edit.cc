#include "diagnose/manifest/edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

namespace fathom {
namespace {

using Form = Foothold::Form;

// Means itself in YAML, in a shell and in TOML, with or without quotes around it.
bool IsPlain(std::string_view value) {
  constexpr std::string_view kHarmless = "_./:@%+=,-*";
  if (value.empty() || value.front() == '*' || value.front() == '%' || value.front() == '@' ||
      value.back() == ':') {
    return false;
  }
  return std::ranges::all_of(value, [&](unsigned char c) {
    return std::isalnum(c) != 0 || kHarmless.contains(static_cast<char>(c));
  });
}

// Words that YAML reads as something else than text.
bool IsWordOfYaml(std::string_view value) {
  constexpr std::string_view kWords[] = {"true", "false", "yes", "no", "on", "off", "null", "~"};
  const bool number = value.find_first_not_of("0123456789.+-eE_xoabcdfABCDF:") == value.npos;
  return number || std::ranges::find(kWords, value) != std::end(kWords);
}

// Between such quotes; nothing where one language or another reads that differently.
std::optional<std::string> Escaped(std::string_view value, char quote) {
  if (value.contains('\n') || value.contains('\r')) return std::nullopt;
  if (quote == '\'') {
    return value.contains('\'') ? std::nullopt : std::optional(std::string(value));
  }
  if (value.contains('$') || value.contains('`')) return std::nullopt;
  std::string escaped;
  for (const char c : value) {
    if (c == '"' || c == '\\') escaped.push_back('\\');
    escaped.push_back(c);
  }
  return escaped;
}

std::optional<std::string> Quoted(std::string_view value, char quote) {
  auto escaped = Escaped(value, quote);
  if (!escaped) return std::nullopt;
  return std::string(1, quote) + *escaped + quote;
}

// A text of YAML: in quotes where it has to be.
std::optional<std::string> YamlText(std::string_view value) {
  if (IsPlain(value) && !IsWordOfYaml(value)) return std::string(value);
  return Quoted(value, value.contains('"') ? '\'' : '"');
}

std::optional<std::string> QuotedForShell(std::string_view value) {
  if (IsPlain(value) && !value.contains('*')) return std::string(value);
  return Quoted(value, '\'');
}

bool IsQuote(char c) { return c == '"' || c == '\''; }

std::string_view LineEndOf(std::string_view text) {
  const size_t end = text.find('\n');
  return end != text.npos && end > 0 && text[end - 1] == '\r' ? "\r\n" : "\n";
}

std::string Behind(std::string_view comment) {
  return comment.empty() ? std::string() : fmt::format("  # {}", comment);
}

// Whole lines at an offset where a line begins, or at the end of a text whose last line has none.
TextEdit InsertLines(const SourceFile& source, size_t offset, size_t indent,
                     const std::vector<std::string>& lines) {
  const std::string_view end = LineEndOf(source.text);
  const bool unfinished =
      offset == source.text.size() && !source.text.empty() && source.text.back() != '\n';
  std::string text;
  for (const std::string& line : lines) {
    if (unfinished) text.append(end);
    text.append(indent, ' ').append(line);
    if (!unfinished) text.append(end);
  }
  return {source.name, {offset, 0}, std::move(text)};
}

bool Fits(const SourceFile& source, const Foothold& foothold) {
  return foothold.form != Form::kNone && foothold.file == source.name &&
         foothold.offset <= source.text.size();
}

// What is written already can only be replaced where it is.
std::optional<TextEdit> ReplaceOrNothing(const SourceFile& source, const Written& written,
                                         std::string_view value) {
  return written.place.file == source.name ? Replace(source, written, value) : std::nullopt;
}

std::vector<std::string> VariableLines(Form form, std::string_view name, std::string_view value,
                                       std::string_view comment) {
  const auto quoted = Quoted(value, value.contains('"') ? '\'' : '"');
  if (!quoted) return {};
  const std::string text = *quoted + Behind(comment);
  if (form == Form::kYamlEnvList) return {fmt::format("- name: {}", name), "  value: " + text};
  if (form == Form::kYamlEnvMap) return {fmt::format("{}: {}", name, text)};
  if (form != Form::kYamlEnvPairs || !IsPlain(value)) return {};
  return {fmt::format("- {}={}{}", name, value, Behind(comment))};
}

// --x=32 where the others are written so.
bool WithEquals(const SourceFile& source, const Program& program) {
  return !program.flags.empty() && std::ranges::any_of(program.flags, [&](const Written& flag) {
    return flag.span && flag.place.file == source.name && flag.span->offset > 0 &&
           flag.span->offset <= source.text.size() && source.text[flag.span->offset - 1] == '=';
  });
}

std::vector<std::string> FlagLines(std::string_view name, std::string_view value, bool equals) {
  if (value.empty()) return {fmt::format("- {}", name)};
  const auto text = YamlText(value);
  if (!text) return {};
  if (!equals) return {fmt::format("- {}", name), "- " + *text};
  const auto whole = YamlText(fmt::format("{}={}", name, value));
  return whole ? std::vector{"- " + *whole} : std::vector<std::string>();
}

std::optional<TextEdit> AddFlowItems(const SourceFile& source, size_t at, std::string_view name,
                                     std::string_view value) {
  const auto text = Quoted(value, value.contains('"') ? '\'' : '"');
  if (!text) return std::nullopt;
  std::string items = fmt::format("\"{}\"", name);
  if (!value.empty()) items += ", " + *text;
  const bool first = at > 0 && source.text[at - 1] == '[';
  return TextEdit{source.name, {at, 0}, first ? items : ", " + items};
}

// On a line of its own where the last word of the command is.
std::string Separator(const SourceFile& source, size_t at) {
  const std::string_view before = std::string_view(source.text).substr(0, at);
  const size_t start = before.rfind('\n');
  if (start == before.npos || start == 0) return " ";
  size_t end = start;
  if (before[end - 1] == '\r') --end;
  if (end == 0 || before[end - 1] != '\\') return " ";
  const size_t first = before.find_first_not_of(" \t", start + 1);
  if (first == before.npos) return " ";
  return fmt::format(" \\{}{}", LineEndOf(source.text),
                     before.substr(start + 1, first - start - 1));
}

std::optional<TextEdit> AddToText(const SourceFile& source, const Foothold& foothold,
                                  std::string_view name, std::string_view value) {
  const auto word = value.empty() ? std::optional<std::string>("") : QuotedForShell(value);
  if (!word || (foothold.nested && *word != value)) return std::nullopt;
  const std::string separator = foothold.nested ? " " : Separator(source, foothold.offset);
  std::string text = fmt::format("{}{}", separator, name);
  if (!value.empty()) text.append(" ").append(*word);
  return TextEdit{source.name, {foothold.offset, 0}, std::move(text)};
}

std::optional<TextEdit> AddLines(const SourceFile& source, const Foothold& foothold,
                                 std::vector<std::string> lines) {
  if (lines.empty()) return std::nullopt;
  if (foothold.missing) {
    for (std::string& line : lines) line.insert(0, "  ");
    lines.insert(lines.begin(), foothold.key + ":");
  }
  return InsertLines(source, foothold.offset, foothold.indent, lines);
}

// The beginning of the line where `at` is, if nothing but blanks and `leaf` stand before it.
std::optional<size_t> LineOfKey(const SourceFile& source, size_t at, std::string_view leaf) {
  const size_t before = at == 0 ? std::string::npos : source.text.rfind('\n', at - 1);
  const size_t start = before == std::string::npos ? 0 : before + 1;
  const size_t first = source.text.find_first_not_of(' ', start);
  const std::string_view line = std::string_view(source.text).substr(first, at - first);
  return line.starts_with(leaf) && line.substr(leaf.size()).starts_with(':') ? std::optional(start)
                                                                             : std::nullopt;
}

// Above a key of the same parent, as far in as that one.
std::optional<TextEdit> AddBeside(const SourceFile& source, const Program& program,
                                  std::string_view parent, const std::string& line) {
  for (const Written& key : program.keys) {
    const std::string_view name = key.name;
    if (!key.span || key.place.file != source.name || !name.starts_with(parent)) continue;
    const std::string_view leaf = name.substr(parent.size());
    if (leaf.contains('.')) continue;
    const auto start = LineOfKey(source, key.span->offset, leaf);
    if (!start) continue;
    const size_t indent = source.text.find_first_not_of(' ', *start) - *start;
    return InsertLines(source, *start, indent, {line});
  }
  return std::nullopt;
}

bool HasParent(const Program& program, std::string_view parent) {
  return std::ranges::any_of(program.keys, [&](const Written& key) {
    return key.name.starts_with(parent) || key.name + "." == parent;
  });
}

}  // namespace

std::optional<TextEdit> Replace(const SourceFile& source, const Written& written,
                                std::string_view value) {
  if (!written.span || written.span->offset + written.span->length > source.text.size()) {
    return std::nullopt;
  }
  const Span span = *written.span;
  const std::string_view old = std::string_view(source.text).substr(span.offset, span.length);
  const char before = span.offset == 0 ? '\n' : source.text[span.offset - 1];
  const size_t end = span.offset + span.length;
  const char after = end == source.text.size() ? '\n' : source.text[end];
  std::optional<std::string> text;
  if (old.size() > 1 && IsQuote(old.front()) && old.back() == old.front()) {
    text = Quoted(value, old.front());
  } else if (IsQuote(before) && after == before) {
    text = Escaped(value, before);
  } else if (IsPlain(value)) {
    text = std::string(value);
  } else if (before == ' ' && !old.empty()) {
    text = Quoted(value, '\'');
  }
  if (!text) return std::nullopt;
  return TextEdit{source.name, span, *std::move(text)};
}

std::optional<TextEdit> SetVariable(const SourceFile& source, const Program& program,
                                    std::string_view name, std::string_view value,
                                    std::string_view comment) {
  if (const Written* written = program.Variable(name)) {
    return ReplaceOrNothing(source, *written, value);
  }
  const Foothold& foothold = program.environment_foothold;
  if (!Fits(source, foothold)) return std::nullopt;
  return AddLines(source, foothold, VariableLines(foothold.form, name, value, comment));
}

std::optional<TextEdit> SetFlag(const SourceFile& source, const Program& program,
                                std::string_view name, std::string_view value) {
  if (const Written* written = program.Flag(name)) return ReplaceOrNothing(source, *written, value);
  const Foothold& foothold = program.flag_foothold;
  if (!Fits(source, foothold)) return std::nullopt;
  switch (foothold.form) {
    case Form::kYamlItems:
      return AddLines(source, foothold, FlagLines(name, value, WithEquals(source, program)));
    case Form::kYamlFlowItems:
      return AddFlowItems(source, foothold.offset, name, value);
    case Form::kText:
      return AddToText(source, foothold, name, value);
    default:
      return std::nullopt;
  }
}

std::optional<TextEdit> SetKey(const SourceFile& source, const Program& program,
                               std::string_view dotted, std::string_view value,
                               std::string_view comment) {
  if (const Written* written = program.Key(dotted)) {
    return ReplaceOrNothing(source, *written, value);
  }
  const Foothold& foothold = program.key_foothold;
  const bool toml = foothold.form == Form::kTomlKeys;
  const size_t dot = dotted.rfind('.');
  const std::string_view parent = dot == dotted.npos ? "" : dotted.substr(0, dot + 1);
  const std::string_view leaf = dotted.substr(parent.size());
  // true, 32 and 0.9 stay what they are; other texts may need quotes.
  const auto text = IsWordOfYaml(value) ? std::optional(std::string(value)) : YamlText(value);
  if (!text || toml || !Fits(source, foothold)) return std::nullopt;
  const std::string line = fmt::format("{}: {}{}", leaf, *text, Behind(comment));
  if (HasParent(program, parent) || parent.empty()) {
    if (auto beside = AddBeside(source, program, parent, line)) return beside;
    if (!parent.empty()) return std::nullopt;
  }
  if (parent.empty()) return InsertLines(source, foothold.offset, foothold.indent, {line});
  if (parent.substr(0, parent.size() - 1).contains('.')) return std::nullopt;
  return InsertLines(source, foothold.offset, foothold.indent,
                     {fmt::format("{}:", parent.substr(0, parent.size() - 1)), "  " + line});
}

std::string Apply(const SourceFile& source, std::span<const TextEdit> edits) {
  // By offset, and in their own order at one offset.
  std::vector<std::pair<size_t, size_t>> order;
  for (size_t i = 0; i < edits.size(); ++i) {
    const Span span = edits[i].span;
    const bool inside =
        span.offset <= source.text.size() && span.length <= source.text.size() - span.offset;
    if (edits[i].file == source.name && inside) order.emplace_back(span.offset, i);
  }
  std::ranges::sort(order);
  std::string out;
  size_t at = 0;
  for (const auto& [offset, index] : order) {
    if (offset < at) continue;
    out.append(source.text, at, offset - at).append(edits[index].text);
    at = offset + edits[index].span.length;
  }
  return out.append(source.text, at);
}

}  // namespace fathom
