#include "io/kube/kube_event.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <ranges>
#include <span>
#include <utility>

#include "codec/json_scan.h"

namespace fathom {
namespace {

constexpr size_t kMaxContinue = 16 << 10;  // bytes of a page's name

std::string BoundedText(const Json* object, std::string_view member, size_t most) {
  const Json* const value = object == nullptr ? nullptr : object->Find(member);
  const std::string* const text = value == nullptr ? nullptr : value->string();
  return text == nullptr || text->size() > most ? "" : *text;
}

std::unexpected<Error> BadAnswer(std::string_view why) { return Fail(Blame::kPeer, "{}", why); }

// The member that Find() has found, without a copy.
Json TakeMember(Json whole, std::string_view member) {
  Json::Value value = std::move(whole).Take();
  for (auto& [name, part] : std::views::reverse(std::get<Json::Object>(value))) {
    if (name == member) return std::move(part);
  }
  return {};
}

struct KindName {
  std::string_view name;
  KubeEvent::Kind kind;
};
constexpr std::array kKindNames = {
    KindName{"ADDED", KubeEvent::Kind::kAdded},
    KindName{"MODIFIED", KubeEvent::Kind::kModified},
    KindName{"DELETED", KubeEvent::Kind::kDeleted},
    KindName{"BOOKMARK", KubeEvent::Kind::kBookmark},
    KindName{"ERROR", KubeEvent::Kind::kError},
};

uint64_t Mix(uint64_t a, uint64_t b) {
  const std::array<uint64_t, 2> both = {a, b};
  return XXH3_64bits(both.data(), sizeof(both));
}

// The types are told apart by a number of their own, so that "1" is not 1.
uint64_t HashOf(const Json& value, std::span<const std::string_view> without);

// Members in any order: the sum does not depend on it.
uint64_t HashOfMembers(const Json::Object& members, std::span<const std::string_view> without) {
  uint64_t sum = 0;
  for (const auto& [name, value] : members) {
    if (std::ranges::find(without, name) != without.end()) continue;
    sum += Mix(XXH3_64bits(name.data(), name.size()), HashOf(value, {}));
  }
  return Mix(sum, 7);
}

uint64_t HashOf(const Json& value, std::span<const std::string_view> without) {
  if (const Json::Object* members = value.object()) return HashOfMembers(*members, without);
  if (const Json::Array* items = value.array()) {
    uint64_t hash = 6;
    for (const Json& item : *items) hash = Mix(hash, HashOf(item, {}));
    return hash;
  }
  if (const std::string* text = value.string()) {
    return Mix(XXH3_64bits(text->data(), text->size()), 5);
  }
  if (const bool* truth = value.boolean()) return Mix(*truth ? 1 : 0, 4);
  if (const auto whole = value.unsigned_integer()) return Mix(*whole, 3);
  if (const auto number = value.number()) return Mix(std::bit_cast<uint64_t>(*number), 2);
  return 1;
}

}  // namespace

Result<KubeEvent> ReadKubeEvent(std::string_view line) {
  auto parsed = Json::ParseWithLargeNumbers(line);
  const Json* const found = parsed ? parsed->Find("object") : nullptr;
  if (found == nullptr || found->object() == nullptr) {
    return BadAnswer("a line of the watch is not an event");
  }
  const std::string type = BoundedText(&*parsed, "type", 64);
  const auto known = std::ranges::find(kKindNames, type, &KindName::name);
  if (known == kKindNames.end()) return BadAnswer("an event of the watch has an unknown type");
  KubeEvent event;
  event.kind = known->kind;
  event.object = TakeMember(*std::move(parsed), "object");
  const Json* const object = &event.object;
  if (event.kind == KubeEvent::Kind::kError) {
    const Json* const code = object->Find("code");
    const uint64_t number = code == nullptr ? 0 : code->unsigned_integer().value_or(0);
    event.code = number >= 100 && number < 600 ? static_cast<int>(number) : 500;
    return event;
  }
  event.version = BoundedText(object->Find("metadata"), "resourceVersion", kMaxKubeVersion);
  if (event.version.empty()) return BadAnswer("an event of the watch has no resourceVersion");
  if (event.kind == KubeEvent::Kind::kBookmark) return event;
  event.name = KubeNameOf(*object);
  if (event.name.empty()) return BadAnswer("an object of the watch has no name");
  return event;
}

Result<KubePage> ReadKubePage(std::string_view body) {
  KubePage page;
  JsonScanner scanner(body);
  for (;;) {
    auto member = scanner.Next();
    if (!member) return BadAnswer("the answer is not a list of objects");
    if (!*member) break;
    if (JsonKeyIs((*member)->key, "items")) page.items = (*member)->value;
    if (!JsonKeyIs((*member)->key, "metadata")) continue;
    const auto metadata = Json::ParseWithLargeNumbers((*member)->value);
    if (!metadata) return BadAnswer("the list's metadata cannot be read");
    page.version = BoundedText(&*metadata, "resourceVersion", kMaxKubeVersion);
    page.next = BoundedText(&*metadata, "continue", kMaxContinue);
  }
  // An empty list of a custom resource may be null.
  if (page.items == "null") page.items = "[]";
  if (!page.items.starts_with('[')) return BadAnswer("the answer is not a list of objects");
  if (page.version.empty()) return BadAnswer("the list has no resourceVersion");
  return page;
}

std::string KubeNameOf(const Json& object) {
  return BoundedText(object.Find("metadata"), "name", kMaxKubeName);
}

uint64_t KubeContentHash(const Json& object) {
  constexpr std::array<std::string_view, 2> kUnsaid = {"kind", "apiVersion"};
  constexpr std::array<std::string_view, 2> kPassing = {"resourceVersion", "managedFields"};
  const Json::Object* const members = object.object();
  if (members == nullptr) return HashOf(object, {});
  uint64_t sum = 0;
  for (const auto& [name, value] : *members) {
    if (std::ranges::find(kUnsaid, name) != kUnsaid.end()) continue;
    const bool metadata = name == "metadata";
    const uint64_t hash = metadata ? HashOf(value, kPassing) : HashOf(value, {});
    sum += Mix(XXH3_64bits(name.data(), name.size()), hash);
  }
  return sum;
}

}  // namespace fathom
