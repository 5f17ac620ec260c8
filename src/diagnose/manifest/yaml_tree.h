// What does a YAML text say, and where does it say it?
//
// Every node knows its bytes, so that a message can name its line and an edit can replace it alone.
// JSON is read as the YAML that it is.
//
// Memory  At most kMaxNodes nodes, however often anchors are used: each use counts as much as what
//         it stands for. At most kMaxDepth deep.
// Errors  kCaller, "x.yaml:12:3: bad YAML: ...": what is no YAML, a key twice in one map, an anchor
//         inside itself, a text beyond the bounds, bytes that are no text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "diagnose/manifest/passage.h"

namespace fathom {

struct YamlNode {
  enum class Kind : uint8_t { kNull, kScalar, kSequence, kMap };
  struct Entry {
    const YamlNode* key = nullptr;
    const YamlNode* value = nullptr;
    bool merged = false;  // it comes from another map by <<
  };

  Kind kind = Kind::kNull;
  char quote = 0;     // ' or ", or | or >; 0: a plain scalar
  bool flow = false;  // [] or {}
  const Passage* passage = nullptr;
  size_t offset = 0;  // in the passage; of a scalar with its quotes
  size_t length = 0;  // of a scalar with its quotes
  std::string text;   // of a scalar, without quotes
  std::vector<const YamlNode*> items;
  std::vector<Entry> entries;

  bool scalar() const { return kind == Kind::kScalar; }
  bool map() const { return kind == Kind::kMap; }
  bool sequence() const { return kind == Kind::kSequence; }

  // nullptr where this is no map or has no such key, or the key has no value.
  const YamlNode* Find(std::string_view key) const;
  // Down a path of keys.
  template <class... Keys>
  const YamlNode* Find(std::string_view key, Keys... keys) const {
    const YamlNode* child = Find(key);
    return child == nullptr ? nullptr : child->Find(keys...);
  }
  // The scalar under that key; empty where there is none.
  std::string_view TextOf(std::string_view key) const;

  FilePlace place() const { return passage->PlaceOf(offset); }
  std::optional<Span> span() const { return passage->SpanOf(offset, length); }
  // The byte after it, in its passage; of collections after what is last in them.
  size_t End() const;
};

class YamlTree {
 public:
  static constexpr size_t kMaxNodes = 1'000'000;
  static constexpr size_t kMaxDepth = 100;

  static Result<YamlTree> Parse(const Passage& passage);

  // Without the empty ones.
  const std::vector<const YamlNode*>& documents() const { return body_->documents; }

 private:
  friend class YamlTreeBuilder;
  struct Body {
    explicit Body(Passage text) : passage(std::move(text)) {}
    Passage passage;
    std::deque<YamlNode> nodes;
    std::vector<const YamlNode*> documents;
  };

  explicit YamlTree(std::unique_ptr<Body> body) : body_(std::move(body)) {}

  std::unique_ptr<Body> body_;
};

// The text of a scalar by itself. Nothing where its bytes cannot be found again.
std::optional<Passage> PassageOf(const YamlNode& scalar);

// How many bytes of `text` the scalar that starts at `offset` takes, with its quotes; 0 where they
// are never closed.
size_t ScalarLength(std::string_view text, size_t offset, std::string_view value);

}  // namespace fathom
