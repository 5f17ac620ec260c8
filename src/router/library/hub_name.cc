#include "router/library/hub_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace fathom {
namespace {

constexpr size_t kLongestName = 96;
constexpr size_t kLongestRevision = 128;

bool IsAlphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool IsNameByte(char c) { return IsAlphanumeric(c) || c == '.' || c == '_' || c == '-'; }

// Also a part of a revision such as "refs/pr/7".
bool IsPart(std::string_view part) {
  if (part.empty() || !std::ranges::all_of(part, IsNameByte)) return false;
  const auto edge = [](char c) { return IsAlphanumeric(c) || c == '_'; };
  if (!edge(part.front()) || !edge(part.back())) return false;
  return part.find("..") == part.npos && part.find("--") == part.npos;
}

bool IsRevision(std::string_view text) {
  if (text.empty() || text.size() > kLongestRevision) return false;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('/', begin), text.size());
    if (!IsPart(text.substr(begin, end - begin))) return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace

bool IsHubName(std::string_view text) {
  if (text.size() > kLongestName) return false;
  const size_t slash = text.find('/');
  if (slash == text.npos) return IsPart(text);
  return IsPart(text.substr(0, slash)) && IsPart(text.substr(slash + 1));
}

bool IsCommit(std::string_view text) {
  constexpr size_t kDigits = 40;
  return text.size() == kDigits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

Result<HubRef> HubRef::Parse(std::string_view text) {
  const std::string_view rest = Is(text) ? text.substr(kPrefix.size()) : text;
  const size_t at = rest.find('@');
  HubRef ref;
  ref.name = rest.substr(0, at);
  if (at != rest.npos) ref.revision = rest.substr(at + 1);
  if (IsHubName(ref.name) && IsRevision(ref.revision)) return ref;
  std::string shown;
  AppendJsonString(shown, text);
  return Fail(Blame::kCaller,
              "{}: not a model of a hub; it looks like hf:ORG/NAME or hf:ORG/NAME@REVISION, where "
              "the revision is a branch, a tag or a commit",
              shown);
}

std::string HubRef::ToString() const {
  const bool usual = revision == kUsualRevision;
  return usual ? fmt::format("{}{}", kPrefix, name)
               : fmt::format("{}{}@{}", kPrefix, name, revision);
}

std::string HubRef::FolderOf(std::string_view name) {
  std::string folder = "models";
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    folder.append("--").append(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return folder;
}

}  // namespace fathom
