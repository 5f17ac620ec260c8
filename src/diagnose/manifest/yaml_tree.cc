#include "diagnose/manifest/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <ranges>
#include <sstream>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace fathom {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kMerge = "<<";

// Anchors and tags stand before the node that they belong to.
size_t BehindProperties(std::string_view text, size_t at) {
  while (at < text.size() && (text[at] == '&' || text[at] == '!')) {
    at = std::min(text.find_first_of(" \t\r\n", at), text.size());
    at = std::min(text.find_first_not_of(" \t\r\n", at), text.size());
  }
  return at;
}

}  // namespace

// Has only the library's own way to stop it: an exception that YamlTree::Parse catches.
class YamlTreeBuilder : public YAML::EventHandler {
 public:
  YamlTreeBuilder(YamlTree::Body& body, size_t skipped) : body_(body), skipped_(skipped) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    // At a token that fits nowhere the library finds empty documents without end.
    if (mark.pos == document_) Stop(mark, "this text belongs to no node");
    document_ = mark.pos;
    anchors_.clear();
    frames_.clear();
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Add(Make(mark, YamlNode::Kind::kNull), anchor, 1, mark);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchors_.find(anchor);
    if (known == anchors_.end()) Stop(mark, "an anchor refers to a node that contains it");
    Spend(mark, known->second.weight);
    Put(known->second.node, known->second.weight, mark);
  }

  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode& node = Make(mark, YamlNode::Kind::kScalar);
    const std::string_view text = body_.passage.text();
    node.offset = BehindProperties(text, node.offset);
    if (node.offset < text.size() && std::string_view("'\"|>").contains(text[node.offset])) {
      node.quote = text[node.offset];
    }
    node.length = ScalarLength(text, node.offset, value);
    if (node.length == 0 && (node.quote == '"' || node.quote == '\'')) {
      Stop(mark, "a quote that is never closed");
    }
    node.text = value;
    Add(node, anchor, 1, mark);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    Open(mark, YamlNode::Kind::kSequence, anchor, style);
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    Open(mark, YamlNode::Kind::kMap, anchor, style);
  }
  void OnMapEnd() override {
    Merge(frames_.back());
    Close();
  }

 private:
  struct Frame {
    YamlNode* node;
    YAML::Mark mark;
    YAML::anchor_t anchor;
    size_t weight = 1;              // nodes in it, those behind anchors counted at each use
    const YamlNode* key = nullptr;  // that waits for its value
    std::unordered_set<std::string_view> keys;
  };
  struct Anchored {
    const YamlNode* node;
    size_t weight;
  };

  [[noreturn]] static void Stop(const YAML::Mark& mark, const std::string& why) {
    throw YAML::ParserException(mark, why);
  }

  void Spend(const YAML::Mark& mark, size_t nodes) {
    spent_ += nodes;
    if (spent_ <= YamlTree::kMaxNodes) return;
    Stop(mark,
         fmt::format("more than {} values, anchors counted at each use", YamlTree::kMaxNodes));
  }

  YamlNode& Make(const YAML::Mark& mark, YamlNode::Kind kind) {
    Spend(mark, 1);
    YamlNode& node = body_.nodes.emplace_back();
    node.kind = kind;
    node.passage = &body_.passage;
    node.offset = std::min(skipped_ + static_cast<size_t>(std::max(mark.pos, 0)),
                           body_.passage.text().size());
    return node;
  }

  void Add(const YamlNode& node, YAML::anchor_t anchor, size_t weight, const YAML::Mark& mark) {
    if (anchor != 0) anchors_[anchor] = {&node, weight};
    Put(&node, weight, mark);
  }

  void Put(const YamlNode* node, size_t weight, const YAML::Mark& mark) {
    if (frames_.empty()) {
      if (node->kind != YamlNode::Kind::kNull) body_.documents.push_back(node);
      return;
    }
    Frame& frame = frames_.back();
    frame.weight += weight;
    if (frame.node->sequence()) {
      frame.node->items.push_back(node);
    } else if (frame.key == nullptr) {
      TakeKey(frame, node, mark);
    } else {
      frame.node->entries.push_back({std::exchange(frame.key, nullptr), node});
    }
  }

  static void TakeKey(Frame& frame, const YamlNode* key, const YAML::Mark& mark) {
    frame.key = key;
    if (!key->scalar() || key->text == kMerge) return;
    if (!frame.keys.insert(key->text).second) {
      Stop(mark, fmt::format("the key '{}' is already in this map", key->text.substr(0, 80)));
    }
  }

  void Open(const YAML::Mark& mark, YamlNode::Kind kind, YAML::anchor_t anchor,
            YAML::EmitterStyle::value style) {
    if (frames_.size() >= YamlTree::kMaxDepth) {
      Stop(mark, fmt::format("nested deeper than {}", YamlTree::kMaxDepth));
    }
    YamlNode& node = Make(mark, kind);
    node.flow = style == YAML::EmitterStyle::Flow;
    frames_.push_back({&node, mark, anchor, 1, nullptr, {}});
  }

  void Close() {
    const Frame frame = std::move(frames_.back());
    frames_.pop_back();
    Add(*frame.node, frame.anchor, frame.weight, frame.mark);
  }

  // What a map has itself beats what it takes from others.
  void Merge(Frame& frame) {
    std::vector<YamlNode::Entry>& entries = frame.node->entries;
    const size_t own = entries.size();
    for (size_t i = 0; i < own; ++i) {
      if (!entries[i].key->scalar() || entries[i].key->text != kMerge) continue;
      const YamlNode& source = *entries[i].value;
      MergeMap(frame, source);
      for (const YamlNode* item : source.items) MergeMap(frame, *item);
    }
  }

  void MergeMap(Frame& frame, const YamlNode& source) {
    Spend(frame.mark, source.entries.size());
    for (const YamlNode::Entry& entry : source.entries) {
      if (!entry.key->scalar() || !frame.keys.insert(entry.key->text).second) continue;
      frame.node->entries.push_back({entry.key, entry.value, true});
      ++frame.weight;
    }
  }

  YamlTree::Body& body_;
  const size_t skipped_;  // bytes that the library does not count
  size_t spent_ = 0;
  int document_ = -1;  // where the last one begins
  std::vector<Frame> frames_;
  std::unordered_map<YAML::anchor_t, Anchored> anchors_;
};

namespace {

// The library takes a byte 4 for the end of the text, and other encodings change every position.
Result<> RefuseOtherThanText(const Passage& passage) {
  constexpr std::string_view kStrange("\0\4", 2);
  const std::string_view text = passage.text();
  size_t at = text.find_first_of(kStrange);
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) at = 0;
  if (at == text.npos) return {};
  return Fail(Blame::kCaller, "{}: bad YAML: not text in UTF-8", ToText(passage.PlaceOf(at)));
}

// Line and column in the file, wherever the passage begins.
std::string Located(const Passage& passage, size_t skipped, const YAML::Exception& e) {
  if (e.mark.is_null()) return fmt::format("{}: bad YAML: {}", passage.file().name, e.msg);
  const size_t at =
      std::min(skipped + static_cast<size_t>(std::max(e.mark.pos, 0)), passage.text().size());
  return fmt::format("{}:{}: bad YAML: {}", ToText(passage.PlaceOf(at)), passage.ColumnOf(at),
                     e.msg == "bad file" ? "nested too deep" : e.msg);
}

}  // namespace

Result<YamlTree> YamlTree::Parse(const Passage& passage) {
  TRY_VOID(RefuseOtherThanText(passage));
  auto body = std::make_unique<Body>(passage);
  const size_t skipped = passage.text().starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  try {
    std::istringstream in(std::string(passage.text().substr(skipped)));
    YAML::Parser parser(in);
    YamlTreeBuilder builder(*body, skipped);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& e) {
    return std::unexpected(Error{Blame::kCaller, Located(passage, skipped, e)});
  }
  return YamlTree(std::move(body));
}

const YamlNode* YamlNode::Find(std::string_view key) const {
  for (const Entry& entry : std::views::reverse(entries)) {
    if (!entry.key->scalar() || entry.key->text != key) continue;
    return entry.value->kind == Kind::kNull ? nullptr : entry.value;
  }
  return nullptr;
}

std::string_view YamlNode::TextOf(std::string_view key) const {
  const YamlNode* value = Find(key);
  return value != nullptr && value->scalar() ? std::string_view(value->text) : std::string_view();
}

size_t YamlNode::End() const {
  // Nobody wrote it: the library has it where the next token is.
  if (kind == Kind::kNull) return 0;
  size_t end = offset + length;
  for (const YamlNode* item : items) end = std::max(end, item->End());
  for (const Entry& entry : entries) {
    if (!entry.merged) end = std::max({end, entry.key->End(), entry.value->End()});
  }
  return end;
}

}  // namespace fathom
