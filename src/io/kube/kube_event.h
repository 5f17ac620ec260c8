// What does the API server send: an event of a watch, a page of a list?
//
// Errors  The peer's: what is neither, in words that show nothing of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "codec/json.h"

namespace fathom {

constexpr size_t kMaxKubeName = 253;  // bytes, as Kubernetes itself bounds it
constexpr size_t kMaxKubeVersion =
    1024;  // a resourceVersion is opaque; real ones have a few digits

// One line of a watch.
struct KubeEvent {
  enum class Kind : uint8_t { kAdded, kModified, kDeleted, kBookmark, kError };

  Kind kind = Kind::kError;
  Json object;
  std::string name;     // of added, modified and deleted objects
  std::string version;  // of all but errors: where a watch can be resumed from
  int code = 0;         // of errors: the HTTP status that it stands for
};
Result<KubeEvent> ReadKubeEvent(std::string_view line);

// One page of a list, before its objects are parsed.
struct KubePage {
  std::string version;     // of the list: where a watch begins
  std::string next;        // what the next page is called; empty: this is the last
  std::string_view items;  // the array's text, valid JSON: a part of the body
};
Result<KubePage> ReadKubePage(std::string_view body);

// metadata.name; empty: none that an object can have.
std::string KubeNameOf(const Json& object);

// Equal for objects that differ at most in what says nothing about them: metadata.resourceVersion,
// metadata.managedFields, the order of members, and `kind` and `apiVersion`, which lists leave out.
uint64_t KubeContentHash(const Json& object);

}  // namespace fathom
