// What a template computes with: Python's values, as far as templates meet them.
//
// Texts, lists and dicts are shared and never change, so that copies cost nothing; only a namespace
// can be written to.
//
// Threads  A value may be read by any number at the same time, a namespace by its own render only.
// Memory   Values are released one inside the other: whoever builds them bounds how deep they nest
//          (JSON: 512).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "codec/json.h"

namespace fathom {

class TemplateValue;
// Known to the interpreter alone (jinja/object.h).
struct TemplateCallable;
struct TemplateNamespace;
struct TemplateLoop;
struct TemplateIterator;

using TemplateList = std::vector<TemplateValue>;
// In order of insertion, as Python keeps it. No key twice. Keys that are not texts are written in a
// way that no text can be (see DictKey()).
using TemplateDict = std::vector<std::pair<std::string, TemplateValue>>;

struct TemplateUndefined {
  friend bool operator==(const TemplateUndefined&, const TemplateUndefined&) = default;
};

// What Python calls a sequence of this kind: it decides how the sequence is printed, and what it
// can do.
enum class SequenceKind : uint8_t { kList, kTuple, kGroup, kRange, kKeys, kValues, kItems };

struct TemplateSequence {
  TemplateList items;
  SequenceKind kind;
  uint32_t depth;  // of sequences and dicts in each other
};

struct TemplateMapping {
  TemplateDict members;
  uint32_t depth;
};

struct TemplateText {
  std::string text;
  bool markup = false;  // jinja2's Markup: what is added to it is escaped (jinja/markup.h)
};

// As Python prints it: a minus and digits.
struct LargeInteger {
  std::string digits;
};

class TemplateValue {
 public:
  // In the order of the variant.
  enum class Kind : uint8_t {
    kUndefined,
    kNone,
    kBoolean,
    kInteger,
    kLargeInteger,  // beyond what int64_t can hold: it can be printed and compared
    kFloat,
    kText,
    kSequence,
    kDict,
    kNamespace,
    kCallable,
    kLoop,
    kIterator,
  };

  TemplateValue() = default;  // undefined
  TemplateValue(std::nullptr_t) : value_(nullptr) {}
  TemplateValue(bool value) : value_(value) {}
  TemplateValue(int value) : value_(int64_t{value}) {}
  TemplateValue(int64_t value) : value_(value) {}
  TemplateValue(uint64_t value);
  // It must be beyond int64_t.
  explicit TemplateValue(LargeInteger value)
      : value_(std::make_shared<const LargeInteger>(std::move(value))) {}
  TemplateValue(double value) : value_(value) {}
  TemplateValue(std::string text);
  TemplateValue(std::string_view text) : TemplateValue(std::string(text)) {}
  TemplateValue(const char* text) : TemplateValue(std::string(text)) {}
  TemplateValue(TemplateList list) : TemplateValue(std::move(list), SequenceKind::kList) {}
  TemplateValue(TemplateList list, SequenceKind kind);
  TemplateValue(TemplateDict dict);
  explicit TemplateValue(std::shared_ptr<TemplateNamespace> value) : value_(std::move(value)) {}
  explicit TemplateValue(std::shared_ptr<const TemplateCallable> value)
      : value_(std::move(value)) {}
  explicit TemplateValue(std::shared_ptr<TemplateLoop> value) : value_(std::move(value)) {}
  explicit TemplateValue(std::shared_ptr<TemplateIterator> value) : value_(std::move(value)) {}

  // A JSON document as json.loads would read it: of a repeated key the last value counts.
  static TemplateValue Of(const Json& json);

  Kind kind() const { return static_cast<Kind>(value_.index()); }
  bool is_undefined() const { return kind() == Kind::kUndefined; }
  bool is_none() const { return kind() == Kind::kNone; }
  bool is_text() const { return kind() == Kind::kText; }

  // nullptr: it is of another kind.
  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const int64_t* integer() const { return std::get_if<int64_t>(&value_); }
  const LargeInteger* large_integer() const {
    return Pointee<std::shared_ptr<const LargeInteger>>();
  }
  const double* real() const { return std::get_if<double>(&value_); }
  const std::string* text() const {
    const TemplateText* const text = Pointee<std::shared_ptr<const TemplateText>>();
    return text == nullptr ? nullptr : &text->text;
  }
  bool is_markup() const {
    const TemplateText* const text = Pointee<std::shared_ptr<const TemplateText>>();
    return text != nullptr && text->markup;
  }
  // A text as markup; other values stay as they are.
  TemplateValue AsMarkup() &&;
  const TemplateSequence* sequence() const {
    return Pointee<std::shared_ptr<const TemplateSequence>>();
  }
  const TemplateDict* dict() const {
    const auto* mapping = Pointee<std::shared_ptr<const TemplateMapping>>();
    return mapping == nullptr ? nullptr : &mapping->members;
  }
  TemplateNamespace* name_space() const { return Pointee<std::shared_ptr<TemplateNamespace>>(); }
  const TemplateCallable* callable() const {
    return Pointee<std::shared_ptr<const TemplateCallable>>();
  }
  TemplateLoop* loop() const { return Pointee<std::shared_ptr<TemplateLoop>>(); }
  TemplateIterator* iterator() const { return Pointee<std::shared_ptr<TemplateIterator>>(); }

  // How many sequences, dicts and the like are in each other.
  uint32_t depth() const;
  // Whether both are the same object, not merely equal ones.
  bool Is(const TemplateValue& other) const { return value_ == other.value_; }

 private:
  template <class Pointer>
  typename Pointer::element_type* Pointee() const {
    const Pointer* pointer = std::get_if<Pointer>(&value_);
    return pointer == nullptr ? nullptr : pointer->get();
  }

  std::variant<TemplateUndefined, std::nullptr_t, bool, int64_t,
               std::shared_ptr<const LargeInteger>, double, std::shared_ptr<const TemplateText>,
               std::shared_ptr<const TemplateSequence>, std::shared_ptr<const TemplateMapping>,
               std::shared_ptr<TemplateNamespace>, std::shared_ptr<const TemplateCallable>,
               std::shared_ptr<TemplateLoop>, std::shared_ptr<TemplateIterator>>
      value_;
};

// How a dict has this value as its key: a text as it is, an integer or None behind a byte that no
// UTF-8 has. Nothing: it cannot be one here.
std::optional<std::string> DictKey(const TemplateValue& value);
// The value that the key stands for.
TemplateValue KeyValue(std::string_view key);
bool IsTextKey(std::string_view key);

// The member of that name; nullptr if there is none.
const TemplateValue* FindMember(const TemplateDict& dict, std::string_view key);
// Adds it, or replaces the value that the key has.
void SetMember(TemplateDict& dict, std::string_view key, TemplateValue value);

}  // namespace fathom
