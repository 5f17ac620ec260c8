// What a program reads of fathom listen. Hashes exceed what a JSON number holds exactly, so they
// are strings of 16 hexadecimal digits.
#include <fmt/format.h>

#include <algorithm>

#include "codec/json.h"
#include "diagnose/listen/event_view.h"

namespace fathom {
namespace {

std::string Hex(uint64_t hash) { return fmt::format("{:016x}", hash); }

void WriteHashes(JsonWriter& w, const std::vector<uint64_t>& hashes) {
  w.Key("hashes").BeginArray();
  for (const uint64_t hash : hashes) w.String(Hex(hash));
  w.EndArray();
}

void WriteTokens(JsonWriter& w, const std::vector<TokenId>& tokens) {
  w.Key("token_ids").BeginArray();
  for (const TokenId token : tokens) w.Unsigned(token);
  w.EndArray();
}

std::string_view NameOf(GroupKind kind) {
  switch (kind) {
    case GroupKind::kFull:
      return "full";
    case GroupKind::kWindow:
      return "window";
    case GroupKind::kUnsupported:
      return "unsupported";
  }
  return "unsupported";
}

struct EventWriter {
  JsonWriter& w;
  bool tokens;

  void operator()(const StoredEvent& event) const {
    w.Key("type").String("stored");
    WriteHashes(w, event.hashes);
    w.Key("parent");
    event.parent ? w.String(Hex(*event.parent)) : w.Null();
    w.Key("block_size").Unsigned(event.block_size);
    w.Key("token_count").Unsigned(event.tokens.size());
    w.Key("tier").String(Name(event.tier));
    w.Key("group").Unsigned(event.group).Key("group_kind").String(NameOf(event.kind));
    w.Key("window").Unsigned(event.window);
    w.Key("lora");
    event.lora.empty() ? w.Null() : w.String(event.lora);
    w.Key("salted").Bool(!event.salt.empty()).Key("pairs").Bool(event.pairs);
    w.Key("extra_keys").Unsigned(event.extra.size());
    if (tokens) WriteTokens(w, event.tokens);
  }

  void operator()(const RemovedEvent& event) const {
    w.Key("type").String("removed");
    WriteHashes(w, event.hashes);
    w.Key("tier").String(Name(event.tier)).Key("group").Unsigned(event.group);
  }

  void operator()(const MovedEvent& event) const {
    w.Key("type").String("moved").Key("hash").String(Hex(event.hash));
    w.Key("from").String(Name(event.from)).Key("to").String(Name(event.to));
    w.Key("group").Unsigned(event.group);
  }

  void operator()(const ClearedEvent&) const { w.Key("type").String("cleared"); }
};

void Begin(JsonWriter& w, std::string_view kind, const EventOrigin& origin) {
  w.BeginObject().Key("kind").String(kind).Key("time").Number(origin.time);
  w.Key("source").String(origin.source).Key("rank");
  origin.rank ? w.Unsigned(*origin.rank) : w.Null();
}

void WriteSequence(JsonWriter& w, const EventOrigin& origin) {
  w.Key("seq");
  origin.sequence ? w.Unsigned(*origin.sequence) : w.Null();
  w.Key("topic").String(origin.topic).Key("replayed").Bool(origin.replayed);
}

std::string End(JsonWriter& w) {
  w.EndObject();
  return w.Take() + "\n";
}

}  // namespace

std::string JsonView::Batch(const EventOrigin& origin, const EventBatch& batch,
                            size_t bytes) const {
  JsonWriter w;
  Begin(w, "batch", origin);
  WriteSequence(w, origin);
  w.Key("timestamp");
  batch.timestamp > 0 ? w.Number(batch.timestamp) : w.Null();
  w.Key("bytes").Unsigned(bytes).Key("events").BeginArray();
  for (const CacheEvent& event : batch.events) {
    w.BeginObject();
    std::visit(EventWriter{w, tokens_}, event);
    w.EndObject();
  }
  w.EndArray().Key("ignored").Unsigned(batch.ignored);
  w.Key("malformed").Unsigned(batch.malformed);
  if (batch.malformed > 0) w.Key("problem").String(batch.first_problem);
  return End(w);
}

std::string JsonView::Gap(const EventOrigin& origin, uint64_t first, uint64_t last) const {
  JsonWriter w;
  Begin(w, "gap", origin);
  w.Key("first").Unsigned(first).Key("last").Unsigned(last);
  return End(w);
}

std::string JsonView::Restart(const EventOrigin& origin, uint64_t before, uint64_t now) const {
  JsonWriter w;
  Begin(w, "restart", origin);
  w.Key("before").Unsigned(before).Key("seq").Unsigned(now);
  return End(w);
}

std::string JsonView::Malformed(const EventOrigin& origin, std::string_view reason,
                                size_t bytes) const {
  JsonWriter w;
  Begin(w, "malformed", origin);
  WriteSequence(w, origin);
  w.Key("bytes").Unsigned(bytes).Key("problem").String(reason);
  return End(w);
}

std::string JsonView::Connection(const EventOrigin& origin, bool up) const {
  JsonWriter w;
  Begin(w, up ? "connected" : "disconnected", origin);
  return End(w);
}

std::string JsonView::Summary(const EventTally& t, bool last) const {
  const double seconds = std::max(t.seconds, 1e-3);
  const auto rate = [&](uint64_t n) { return static_cast<double>(n) / seconds; };
  JsonWriter w;
  w.BeginObject().Key("kind").String("summary").Key("final").Bool(last);
  w.Key("seconds").Number(t.seconds).Key("batches").Unsigned(t.batches);
  w.Key("blocks_stored").Unsigned(t.stored).Key("blocks_removed").Unsigned(t.removed);
  w.Key("cleared").Unsigned(t.cleared).Key("bytes").Unsigned(t.bytes);
  w.Key("gaps").Unsigned(t.gaps).Key("missing").Unsigned(t.missing);
  w.Key("restarts").Unsigned(t.restarts).Key("malformed").Unsigned(t.malformed);
  w.Key("ignored").Unsigned(t.ignored);
  w.Key("batches_per_second").Number(rate(t.batches));
  w.Key("blocks_stored_per_second").Number(rate(t.stored));
  w.Key("blocks_removed_per_second").Number(rate(t.removed));
  w.Key("bytes_per_second").Number(rate(t.bytes));
  w.Key("lag_seconds");
  t.lag ? w.Number(*t.lag) : w.Null();
  w.Key("most_lag_seconds");
  t.lag ? w.Number(t.most_lag) : w.Null();
  return End(w);
}

}  // namespace fathom
