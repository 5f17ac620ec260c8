// Is this text valid in Prometheus text format 0.0.4? For tests only.
//
// Stricter than Prometheus: families sorted, HELP and TYPE exactly once and before the samples, no
// series twice, no escape that the format does not define, and consistent histograms.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace fathom {

class ExpositionReader {
 public:
  explicit ExpositionReader(std::string_view text) : rest_(text) {
    if (!text.empty() && !text.ends_with('\n')) Complain("no newline at the end");
    while (problem_.empty() && !rest_.empty()) ReadFamily();
  }

  // Empty when the text is well formed.
  const std::string& problem() const { return problem_; }

  // A series by its text: name{label="value"}, values still escaped.
  std::optional<double> Value(std::string_view series) const {
    const auto found = values_.find(series);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }
  size_t size() const { return values_.size(); }

 private:
  void ReadFamily() {
    const std::string_view help = After("# HELP ", Line());
    const std::string_view name = help.substr(0, help.find(' '));
    if (name.empty() || name <= family_) return Complain("family out of order or twice");
    if (!IsEscaped(help.substr(name.size()), "\\n")) return Complain("bad escape in help");
    family_ = name;
    const std::string_view type = After("# TYPE ", Line());
    if (!type.starts_with(family_ + " ")) return Complain("TYPE does not follow HELP");
    type_ = type.substr(family_.size() + 1);
    if (type_ != "counter" && type_ != "gauge" && type_ != "histogram") Complain("unknown type");
    last_bucket_.clear();
    while (problem_.empty() && !rest_.empty() && !rest_.starts_with('#')) ReadSample(Line());
  }

  void ReadSample(std::string_view line) {
    const size_t space = line.rfind(' ');
    if (space == std::string_view::npos) return Complain("a sample without a value");
    const std::string series(line.substr(0, space));
    const std::string number(line.substr(space + 1));
    const std::string name = series.substr(0, series.find('{'));
    if (!IsName(name)) return Complain("bad metric name");
    if (series.size() > name.size() && !AreLabels(series.substr(name.size()))) {
      return Complain("bad labels");
    }
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    if (number.empty() || *end != '\0') return Complain("bad number");
    if (!values_.emplace(series, value).second) return Complain("series twice");
    if (!BelongsToFamily(name)) return Complain("a sample outside its family");
    if (type_ == "histogram") CheckHistogram(name, series, value);
  }

  bool BelongsToFamily(const std::string& name) const {
    if (type_ != "histogram") return name == family_;
    return name == family_ + "_bucket" || name == family_ + "_sum" || name == family_ + "_count";
  }

  // Buckets ascend in bound and in value, end with +Inf, and are followed by a count equal to it.
  void CheckHistogram(const std::string& name, const std::string& series, double value) {
    if (name.ends_with("_bucket")) {
      const size_t le = series.find("le=\"");
      if (le == std::string::npos) return Complain("a bucket without a bound");
      const double bound = std::strtod(series.c_str() + le + 4, nullptr);
      if (!last_bucket_.empty() && (bound <= last_bound_ || value < last_value_)) {
        return Complain("buckets do not ascend");
      }
      last_bucket_ = series;
      last_bound_ = bound;
      last_value_ = value;
    } else if (name.ends_with("_count")) {
      if (!last_bucket_.contains("le=\"+Inf\"")) return Complain("no +Inf bucket");
      if (last_value_ != value) return Complain("count is not the +Inf bucket");
      last_bucket_.clear();
    }
  }

  static bool IsName(std::string_view name) {
    constexpr std::string_view kFirst =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:0123456789";
    return !name.empty() && name.find_first_not_of(kFirst) == std::string_view::npos &&
           (name[0] < '0' || name[0] > '9');
  }

  // {name="value",name="value"}
  static bool AreLabels(std::string_view text) {
    do {
      text.remove_prefix(1);  // the brace or the comma
      const size_t equals = text.find("=\"");
      if (equals == std::string_view::npos || !IsName(text.substr(0, equals))) return false;
      text.remove_prefix(equals + 2);
      size_t end = 0;
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      if (end >= text.size() || !IsEscaped(text.substr(0, end), "\\n\"")) return false;
      text.remove_prefix(end + 1);
    } while (text.starts_with(','));
    return text == "}";
  }

  // Every backslash is followed by one of the allowed characters.
  static bool IsEscaped(std::string_view text, std::string_view allowed) {
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\\' && (++i == text.size() || !allowed.contains(text[i]))) return false;
    }
    return true;
  }

  std::string_view After(std::string_view prefix, std::string_view line) {
    if (line.starts_with(prefix)) return line.substr(prefix.size());
    Complain("expected '" + std::string(prefix) + "'");
    return {};
  }

  std::string_view Line() {
    line_ = rest_.substr(0, rest_.find('\n'));
    rest_.remove_prefix(std::min(rest_.size(), line_.size() + 1));
    return line_;
  }

  void Complain(const std::string& problem) {
    if (problem_.empty()) problem_ = problem + ": " + std::string(line_);
  }

  std::string_view rest_;
  std::string_view line_;
  std::string problem_;
  std::string family_;
  std::string type_;
  std::string last_bucket_;
  double last_bound_ = 0;
  double last_value_ = 0;
  std::map<std::string, double, std::less<>> values_;
};

}  // namespace fathom
