#include "diagnose/doctor/kube_yaml.h"

#include <algorithm>

#include "base/text.h"

namespace fathom {
namespace {

// What is deeper stands on one line, as JSON: indentation would make it many times as long.
constexpr size_t kMaxIndent = 120;
constexpr size_t kStep = 2;

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// Words that mean something else than themselves when they are not quoted.
bool IsReserved(std::string_view text) {
  for (const std::string_view word :
       {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}) {
    if (EqualsIgnoreCase(text, word)) return true;
  }
  return false;
}

// A text that needs no quotes, whoever reads it. Stricter than YAML.
bool IsPlain(std::string_view text) {
  const auto letter = [](unsigned char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; };
  const auto digit = [](unsigned char c) { return c >= '0' && c <= '9'; };
  if (text.empty() || text.size() > 200 || IsReserved(text)) return false;
  const size_t start = text.starts_with("--") ? 2 : 0;
  if (start == text.size() || text.ends_with(':')) return false;
  if (!letter(static_cast<unsigned char>(text[start])) && text[start] != '/') return false;
  return std::ranges::all_of(text, [&](unsigned char c) {
    return letter(c) || digit(c) || std::string_view("-_./:=@").contains(static_cast<char>(c));
  });
}

// A text of several lines that a block gives back unchanged.
bool FitsBlock(std::string_view text) {
  if (!text.contains('\n') || std::string_view(" \t\n").contains(text.front())) return false;
  if (text.ends_with(' ') || text.contains(" \n")) return false;
  return std::ranges::all_of(text,
                             [](unsigned char c) { return c == '\n' || (c >= ' ' && c < 0x7f); });
}

void AppendBlock(std::string& out, std::string_view text, size_t indent) {
  const bool ends = text.ends_with('\n');
  out += ends ? (text.ends_with("\n\n") ? "|+" : "|") : "|-";
  out += '\n';
  if (ends) text.remove_suffix(1);
  while (true) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (!line.empty()) out.append(indent, ' ').append(line);
    out += '\n';
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

void AppendText(std::string& out, std::string_view text, size_t indent) {
  if (FitsBlock(text)) return AppendBlock(out, text, indent);
  if (IsPlain(text)) {
    out.append(text);
  } else {
    AppendJsonString(out, text);
  }
  out += '\n';
}

bool IsBranch(const Json& value) {
  return (value.array() != nullptr && !value.array()->empty()) ||
         (value.object() != nullptr && !value.object()->empty());
}

// After "key:" or "-", which stands on the line already.
void AppendValue(std::string& out, const Json& value, size_t indent) {
  if (const std::string* text = value.string()) {
    out += ' ';
    AppendText(out, *text, indent);
  } else if (IsBranch(value) && indent <= kMaxIndent) {
    out += '\n';
    AppendYaml(out, value, indent);
  } else {
    out += ' ';
    value.WriteTo(out);
    out += '\n';
  }
}

void AppendItem(std::string& out, const Json& item, size_t indent) {
  out.append(indent, ' ').append("-");
  const bool map = item.object() != nullptr && !item.object()->empty();
  if (!map || indent + kStep > kMaxIndent) return AppendValue(out, item, indent + kStep);
  // The first key stands beside the dash.
  const size_t begun = out.size();
  AppendYaml(out, item, indent + kStep);
  out.replace(begun, indent + kStep, " ");
}

Json Without(const Json& object, std::initializer_list<std::string_view> names) {
  Json::Object kept;
  for (const auto& [name, value] : *object.object()) {
    if (!IsOneOf(name, names)) kept.emplace_back(name, value);
  }
  return Json(std::move(kept));
}

Json AsWritten(const Json& metadata) {
  if (metadata.object() == nullptr) return metadata;
  Json::Object kept;
  for (const auto& [name, value] : *metadata.object()) {
    if (IsOneOf(name, {"managedFields", "uid", "resourceVersion", "generation", "selfLink"})) {
      continue;
    }
    const bool annotations = name == "annotations" && value.object() != nullptr;
    kept.emplace_back(
        name,
        annotations ? Without(value, {"kubectl.kubernetes.io/last-applied-configuration"}) : value);
  }
  return Json(std::move(kept));
}

}  // namespace

void AppendYaml(std::string& out, const Json& value, size_t indent) {
  if (!IsBranch(value)) {
    value.WriteTo(out.append(indent, ' '));
    out += '\n';
  } else if (value.array() != nullptr) {
    for (const Json& item : *value.array()) AppendItem(out, item, indent);
  } else {
    for (const auto& [name, member] : *value.object()) {
      out.append(indent, ' ');
      if (IsPlain(name)) {
        out += name;
      } else {
        AppendJsonString(out, name);
      }
      out += ':';
      AppendValue(out, member, indent + kStep);
    }
  }
}

std::string KubeObjectYaml(const Json& object, std::string_view api_version,
                           std::string_view kind) {
  Json::Object whole;
  whole.emplace_back("apiVersion", Json(std::string(api_version)));
  whole.emplace_back("kind", Json(std::string(kind)));
  if (object.object() != nullptr) {
    for (const auto& [name, value] : *object.object()) {
      if (IsOneOf(name, {"apiVersion", "kind", "status"})) continue;
      whole.emplace_back(name, name == "metadata" ? AsWritten(value) : value);
    }
  }
  std::string out;
  AppendYaml(out, Json(std::move(whole)), 0);
  return out;
}

}  // namespace fathom
