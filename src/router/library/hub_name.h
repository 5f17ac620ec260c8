// Which model of a hub does this text name, in which revision?
//
// Names come from operators and from workers, and become parts of paths: only those that the hub
// itself would accept are names.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fathom {

// Whether the text is "ORG/NAME" or "NAME" as hubs write it: letters, digits, '.', '_' and '-', not
// at the ends of a part, nor two of "." or "-" in a row, at most 96 bytes in all.
bool IsHubName(std::string_view text);

// A commit: 40 lower-case hexadecimal digits.
bool IsCommit(std::string_view text);

struct HubRef {
  static constexpr std::string_view kPrefix = "hf:";
  static constexpr std::string_view kUsualRevision = "main";

  std::string name;                                    // ORG/NAME
  std::string revision = std::string(kUsualRevision);  // a branch, a tag or a commit

  static bool Is(std::string_view text) { return text.starts_with(kPrefix); }
  // "hf:ORG/NAME[@REVISION]".
  static Result<HubRef> Parse(std::string_view text);

  // As it was typed.
  std::string ToString() const;
  // The name of its folder in a cache: "models--ORG--NAME".
  std::string Folder() const { return FolderOf(name); }
  static std::string FolderOf(std::string_view name);
};

}  // namespace fathom
