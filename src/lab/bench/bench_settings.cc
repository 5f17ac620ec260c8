#include "lab/bench/bench_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/exit_status.h"
#include "base/text.h"

namespace fathom {
namespace {

class Reader {
 public:
  Reader(const BenchSetting& setting, std::string_view text) : setting_(setting), text_(text) {}

  bool operator()(std::string* value) const {
    *value = text_;
    return true;
  }
  bool operator()(bool* value) const {
    *value = text_ == "1";
    return text_ == "0" || text_ == "1";
  }
  bool operator()(double* value) const {
    const std::string text(text_);
    char* end = nullptr;
    *value = std::strtod(text.c_str(), &end);
    return !text.empty() && *end == '\0' && InRange(*value);
  }
  template <class Integer>
  bool operator()(Integer* value) const {
    const auto number = ParseDecimal(text_);
    if (!number || !InRange(static_cast<double>(*number))) return false;
    *value = static_cast<Integer>(*number);
    return true;
  }

 private:
  bool InRange(double value) const { return value >= setting_.least && value <= setting_.most; }

  const BenchSetting& setting_;
  const std::string_view text_;
};

}  // namespace

Result<void> ReadSettings(std::span<const std::string_view> words,
                          std::span<const BenchSetting> settings) {
  for (const std::string_view word : words) {
    const size_t equals = word.find('=');
    if (equals == word.npos) return Fail(Blame::kCaller, "'{}' is not NAME=VALUE", word);
    const auto setting = std::ranges::find(settings, word.substr(0, equals), &BenchSetting::name);
    if (setting == settings.end()) return Fail(Blame::kCaller, "no such setting: '{}'", word);
    if (!std::visit(Reader(*setting, word.substr(equals + 1)), setting->value)) {
      return Fail(Blame::kCaller, "not a value, or out of range: '{}'", word);
    }
  }
  return {};
}

int RefuseBench(std::string_view what, std::string_view usage) {
  fmt::print(stderr, "fathom bench: {}\n{}", what, usage);
  return kExitUsage;
}

}  // namespace fathom
