#include "router/replicas/replica_message.h"

#include <algorithm>
#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>

#include "codec/msgpack.h"
#include "codec/msgpack_writer.h"

namespace fathom {
namespace {

constexpr std::string_view kMagic = "fathom";

// --- the fields of each record, in the order in which they are written
//
// Fields are only ever appended: a reader passes over what it does not know. One that a later
// version appends is a std::optional, which older versions leave out.

template <class T, class U>
concept Of = std::same_as<std::remove_const_t<T>, U>;

// A string of any bytes.
template <class T>
struct Bytes {
  T& value;
};

void Describe(auto& a, Of<RankLabel> auto& r) { a(r.worker, r.dp_rank); }
void Describe(auto& a, Of<PromptMark> auto& m) { a(m.key, m.tokens); }
void Describe(auto& a, Of<ReplicaHearing> auto& h) { a(h.id, h.incarnation, h.number, h.ago_ms); }
void Describe(auto& a, Of<ReplicaPresence> auto& p) {
  a(p.interval_ms, p.url, p.models, p.informed, p.version, p.workers, p.hears, p.worker_set,
    p.draining);
}
void Describe(auto& a, Of<RankGauge> auto& g) {
  a(g.rank, g.queued, g.oldest, g.busy_ms, g.context, g.requests, g.waiting);
}
void Describe(auto& a, Of<Gauges::Range> auto& r) { a(r.from, r.to); }
void Describe(auto& a, Of<Gauges> auto& g) { a(g.whole, g.ranks); }
void Describe(auto& a, Of<SentPrompt> auto& p) { a(p.id, p.rank, p.believed_ms, p.marks); }
void Describe(auto& a, Of<SentPromptsTold> auto& p) { a(p.whole, p.prompts); }
void Describe(auto& a, Of<SessionBinding> auto& b) { a(b.session, b.worker, b.clock, b.idle_ms); }
void Describe(auto& a, Of<SessionBindings> auto& b) { a(b.bindings); }
void Describe(auto& a, Of<ResponsePinTold> auto& p) { a(p.response, p.rank, p.tokens, p.idle_ms); }
void Describe(auto& a, Of<ResponsePinsTold> auto& p) { a(p.pins); }
void Describe(auto& a, Of<PolledRank> auto& r) { a(r.rank, r.next); }
void Describe(auto& a, Of<PolledAnswer> auto& p) {
  a(p.worker, p.answer, p.part, p.parts, Bytes{p.bytes}, p.process, p.ranks, p.polls);
}
void Describe(auto& a, Of<Challenge> auto& c) { a(c.to, c.incarnation, c.nonce); }
void Describe(auto& a, Of<Proof> auto& p) { a(p.to, p.nonce); }
void Describe(auto& a, Of<Ask> auto& q) { a(q.to, q.question, q.about, q.rank, q.from); }
void Describe(auto& a, Of<Piece> auto& p) {
  a(p.to, p.question, p.piece, p.pieces, Bytes{p.bytes});
}

// --- writing and reading

class RecordWriter {
 public:
  explicit RecordWriter(MsgpackWriter& out) : out_(out) {}

  template <class... Fields>
  void operator()(const Fields&... fields) {
    out_.Array(sizeof...(Fields));
    (Put(fields), ...);
  }

 private:
  void Put(uint64_t value) { out_.Unsigned(value); }
  void Put(uint32_t value) { out_.Unsigned(value); }
  void Put(bool value) { out_.Bool(value); }
  void Put(double value) { out_.Double(value); }
  void Put(const std::string& text) { out_.String(text); }
  void Put(const Bytes<const std::string>& bytes) { out_.Binary(bytes.value); }
  template <class T>
  void Put(const std::vector<T>& list) {
    out_.Array(static_cast<uint32_t>(list.size()));
    for (const T& element : list) Put(element);
  }
  template <class T>
  void Put(const std::optional<T>& value) {
    value ? Put(*value) : static_cast<void>(out_.Nil());
  }
  template <class T>
  void Put(const T& record) {
    Describe(*this, record);
  }

  MsgpackWriter& out_;
};

template <class T>
constexpr bool kMayBeAbsent = false;
template <class T>
constexpr bool kMayBeAbsent<std::optional<T>> = true;

// Without the fields at the end that may be absent.
template <class... Fields>
consteval uint32_t FewestFields() {
  uint32_t fields = 0;
  uint32_t fewest = 0;
  ((++fields, fewest = kMayBeAbsent<std::remove_cvref_t<Fields>> ? fewest : fields), ...);
  return fewest;
}

class RecordReader {
 public:
  explicit RecordReader(MsgpackReader& in) : in_(in) {}

  bool good() const { return good_ && !in_.failed(); }

  template <class... Fields>
  void operator()(Fields&&... fields) {
    const auto count = in_.TakeArray();
    if (!count || *count < FewestFields<Fields...>()) return Refuse();
    uint32_t field = 0;
    ((field++ < *count ? Get(fields) : void()), ...);
    for (uint32_t i = sizeof...(Fields); i < *count && good(); ++i) in_.Skip();
  }

 private:
  void Refuse() { good_ = false; }
  template <class T, class Taken>
  void Keep(T& into, Taken&& taken) {
    taken ? static_cast<void>(into = T(*taken)) : Refuse();
  }

  void Get(uint64_t& value) { Keep(value, in_.TakeUnsigned()); }
  void Get(uint32_t& value) {
    const auto taken = in_.TakeUnsigned();
    if (!taken || *taken > UINT32_MAX) return Refuse();
    value = static_cast<uint32_t>(*taken);
  }
  void Get(bool& value) { Keep(value, in_.TakeBool()); }
  // Amounts of work: not negative, and not so large that a sum would lose the others.
  void Get(double& value) {
    constexpr double kMost = 1e12;
    Keep(value, in_.TakeFloat());
    if (!(value >= 0 && value <= kMost)) Refuse();
  }
  void Get(std::string& text) { Keep(text, in_.TakeString()); }
  void Get(Bytes<std::string>& bytes) { Keep(bytes.value, in_.TakeBinary()); }
  template <class T>
  void Get(std::vector<T>& list) {
    const auto count = in_.TakeArray();
    if (!count) return Refuse();
    for (uint32_t i = 0; i < *count && good(); ++i) Get(list.emplace_back());
  }
  template <class T>
  void Get(std::optional<T>& value) {
    if (in_.TakeNil()) return value.reset();
    Get(value.emplace());
  }
  template <class T>
  void Get(T& record) {
    if (good()) Describe(*this, record);
  }

  MsgpackReader& in_;
  bool good_ = true;
};

// The place in the variant is the number of the kind: new kinds are appended.
template <size_t I = 1>
void ReadContent(uint64_t kind, RecordReader& reader, ReplicaMessage::Content& content) {
  if constexpr (I < std::variant_size_v<ReplicaMessage::Content>) {
    if (kind != I) return ReadContent<I + 1>(kind, reader, content);
    Describe(reader, content.emplace<I>());
  }
}

// What is kept of it for as long as the origin is heard.
bool IsBounded(const ReplicaPresence& presence) {
  const auto fits = [](const std::string& text) {
    return text.size() <= ReplicaPresence::kLongestText;
  };
  return presence.models.size() <= ReplicaPresence::kMostModels &&
         presence.hears.size() <= ReplicaPresence::kMostHeard && fits(presence.url) &&
         fits(presence.version) && std::ranges::all_of(presence.models, fits) &&
         std::ranges::all_of(presence.hears, fits, &ReplicaHearing::id);
}

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

}  // namespace

bool IsReplicaName(std::string_view name) {
  return !name.empty() && name.size() <= ReplicaMessage::kLongestName &&
         std::ranges::all_of(name, IsNameByte);
}

std::string Encode(const ReplicaMessage& message) {
  MsgpackWriter out;
  out.Array(9).String(kMagic).Unsigned(ReplicaMessage::kMajor).Unsigned(message.minor);
  out.String(message.group).String(message.origin);
  out.Unsigned(message.incarnation).Unsigned(message.number).Unsigned(message.content.index());
  RecordWriter writer(out);
  std::visit(
      [&](const auto& content) {
        if constexpr (std::same_as<decltype(content), const std::monostate&>) {
          out.Array(0);
        } else {
          Describe(writer, content);
        }
      },
      message.content);
  return out.Take();
}

Result<ReplicaMessage> DecodeReplicaMessage(std::string_view bytes) {
  if (bytes.size() > ReplicaMessage::kMostBytes) {
    return Fail(Blame::kPeer, "the message is longer than it may be");
  }
  MsgpackReader in(bytes);
  const auto elements = in.TakeArray();
  const auto magic = in.TakeString();
  const auto major = in.TakeUnsigned();
  if (!elements || *elements < 9 || magic != kMagic || !major) {
    return Fail(Blame::kPeer, "not a message of a Fathom replica");
  }
  if (*major != ReplicaMessage::kMajor) {
    return Fail(Blame::kCaller, "version {} of the replicas' messages; this is version {}", *major,
                ReplicaMessage::kMajor);
  }
  ReplicaMessage message;
  const auto minor = in.TakeUnsigned();
  const auto group = in.TakeString();
  const auto origin = in.TakeString();
  const auto incarnation = in.TakeUnsigned();
  const auto number = in.TakeUnsigned();
  const auto kind = in.TakeUnsigned();
  if (!minor || !group || !origin || !incarnation || !number || !kind || *minor > UINT32_MAX) {
    return Fail(Blame::kPeer, "the head of the message is malformed");
  }
  if (!IsReplicaName(*group) || !IsReplicaName(*origin)) {
    return Fail(Blame::kPeer, "the message names its group or origin in a wrong form");
  }
  message.minor = static_cast<uint32_t>(*minor);
  message.group = *group;
  message.origin = *origin;
  message.incarnation = *incarnation;
  message.number = *number;
  RecordReader reader(in);
  ReadContent(*kind, reader, message.content);
  if (!reader.good()) return Fail(Blame::kPeer, "message of kind {} is malformed", *kind);
  const auto* const presence = std::get_if<ReplicaPresence>(&message.content);
  if (presence != nullptr && !IsBounded(*presence)) {
    return Fail(Blame::kPeer, "the presence is longer than it may be");
  }
  return message;
}

}  // namespace fathom
