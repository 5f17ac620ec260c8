// JSON as a tree (for the control plane), and a writer of JSON text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace fathom {

// A parsed document. Convenient rather than fast: for answers of workers and bodies of admin calls.
// The request path uses JsonScanner.
//
// Errors  kCaller; a caller that reads a peer's answer replaces that by kPeer.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;
  // An integer beyond 64 bits, as it was written. Only JsonAsPython() reads one.
  struct BigInteger {
    std::string digits;
    bool operator==(const BigInteger&) const = default;
  };
  using Value = std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string, Array,
                             Object, BigInteger>;

  static Result<Json> Parse(std::string_view text);
  // Integers beyond 64 bits, such as Python's 1000000000000000019884624838656, become floating
  // point here, while Parse() refuses them.
  static Result<Json> ParseWithLargeNumbers(std::string_view text);

  Json() : value_(nullptr) {}
  explicit Json(Value value) : value_(std::move(value)) {}

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const std::string* string() const { return std::get_if<std::string>(&value_); }
  const Array* array() const { return std::get_if<Array>(&value_); }
  const Object* object() const { return std::get_if<Object>(&value_); }
  // Any of the number types, if it fits.
  std::optional<double> number() const;
  std::optional<uint64_t> unsigned_integer() const;

  // The member of that name; nullptr if there is none or this is not an object.
  const Json* Find(std::string_view key) const;

  const Value& value() const { return value_; }
  Value Take() && { return std::move(value_); }

  // Appends the document as compact JSON.
  void WriteTo(std::string& out) const;

 private:
  Value value_;
};

// Writes JSON into a string, with the commas.
//
//   JsonWriter w;
//   w.BeginObject().Key("status").String("ok").Key("workers").BeginArray()...EndArray();
//   w.EndObject();
class JsonWriter {
 public:
  JsonWriter& BeginObject();
  JsonWriter& EndObject();
  JsonWriter& BeginArray();
  JsonWriter& EndArray();
  JsonWriter& Key(std::string_view key);
  JsonWriter& String(std::string_view value);
  JsonWriter& Int(int64_t value);
  JsonWriter& Unsigned(uint64_t value);
  JsonWriter& Number(double value);  // not finite: null
  JsonWriter& Bool(bool value);
  JsonWriter& Null();
  JsonWriter& Raw(std::string_view json);  // already JSON

  const std::string& text() const { return out_; }
  std::string Take() { return std::move(out_); }

 private:
  void Comma();

  std::string out_;
  bool need_comma_ = false;
};

}  // namespace fathom
