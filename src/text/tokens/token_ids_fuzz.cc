// The fast reading of a list of token ids must agree with a slow one, made of the JSON scanner and
// one number at a time.
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "codec/json_scan.h"
#include "text/tokens/token_ids.h"

namespace fathom {
namespace {

std::optional<std::vector<TokenId>> ReadSlowly(std::string_view text) {
  const std::string document = "{\"ids\":" + std::string(text) + "}";
  JsonScanner scanner(document);
  const auto member = scanner.Next();
  if (!member || !*member || !(*member)->value.starts_with('[')) return std::nullopt;
  const auto end = scanner.Next();
  if (!end || *end) return std::nullopt;
  std::vector<TokenId> ids;
  JsonElements elements((*member)->value);
  while (const auto element = elements.Next()) {
    const auto id = ParseDecimal(*element);
    if (!id || *id > std::numeric_limits<TokenId>::max()) return std::nullopt;
    ids.push_back(static_cast<TokenId>(*id));
  }
  return ids;
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  // In memory of exactly its size, so that a read past the end is seen.
  const std::vector<char> exact(data, data + size);
  const std::string_view text(exact.data(), exact.size());
  const auto expected = ReadSlowly(text);

  std::vector<TokenId> ids;
  CHECK(AppendTokenIds(text, ids).has_value() == expected.has_value());
  CHECK(ids == expected.value_or(std::vector<TokenId>()));

  if (!expected || expected->empty()) return 0;
  CHECK(AppendTokenIds(text, ids, expected->size()).has_value());
  CHECK(ids.size() == 2 * expected->size());
  CHECK(!AppendTokenIds(text, ids, expected->size() - 1));
  CHECK(ids.size() == 2 * expected->size());
  return 0;
}
