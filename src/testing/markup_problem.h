// Is this html or svg well-formed? For tests.
//
// Stricter than a browser: tags are closed in order, attributes quoted, entities known. The content
// of <style> is not checked.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace fathom {

class MarkupCheck {
 public:
  explicit MarkupCheck(std::string_view markup) : rest_(markup) {}

  // The first problem; empty: there is none.
  std::string Problem() && {
    while (problem_.empty() && !rest_.empty()) {
      if (rest_.starts_with("<style>"))
        rest_.remove_prefix(std::min(rest_.find("</style>") + 8, rest_.size()));
      if (rest_.starts_with('<')) {
        ReadTag();
      } else {
        ReadText(rest_.substr(0, std::min(rest_.find('<'), rest_.size())));
      }
    }
    if (problem_.empty() && !open_.empty()) problem_ = "not closed: " + open_.back();
    return problem_;
  }

 private:
  void ReadText(std::string_view text) {
    if (text.contains('>')) problem_ = "a bare > in: " + std::string(text);
    ReadEntities(text);
    rest_.remove_prefix(text.size());
  }

  void ReadEntities(std::string_view text) {
    constexpr std::array<std::string_view, 5> kKnown = {"&lt;", "&gt;", "&amp;", "&quot;", "&#39;"};
    for (size_t at = 0; (at = text.find('&', at)) != std::string_view::npos; ++at) {
      const std::string_view here = text.substr(at);
      if (!std::ranges::any_of(kKnown, [&](auto entity) { return here.starts_with(entity); })) {
        problem_ = "a bare & in: " + std::string(text);
      }
    }
  }

  void ReadTag() {
    const size_t end = rest_.find('>');
    if (end == std::string_view::npos) {
      problem_ = "an open tag at the end";
      return;
    }
    std::string_view tag = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    const bool closed = tag.ends_with('/');
    if (closed) tag.remove_suffix(1);
    const std::string name(tag.substr(0, tag.find(' ')));
    if (name.starts_with('/')) return Close(name.substr(1));
    ReadAttributes(tag.substr(name.size()));
    if (!closed && name != "meta" && name != "br" && name != "!doctype") open_.push_back(name);
  }

  void Close(const std::string& name) {
    if (open_.empty() || open_.back() != name) {
      problem_ = "closes what is not open: " + name;
    } else {
      open_.pop_back();
    }
  }

  // name="value" pairs; a name alone is allowed only as in html.
  void ReadAttributes(std::string_view attributes) {
    if (std::ranges::count(attributes, '"') % 2 != 0 || attributes.contains('<')) {
      problem_ = "attributes: " + std::string(attributes);
    }
    ReadEntities(attributes);
  }

  std::string_view rest_;
  std::vector<std::string> open_;
  std::string problem_;
};

inline std::string MarkupProblem(std::string_view markup) { return MarkupCheck(markup).Problem(); }

}  // namespace fathom
