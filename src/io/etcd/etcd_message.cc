#include "io/etcd/etcd_message.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "codec/base64.h"
#include "codec/json.h"

namespace fathom {
namespace {

// The number in a member; 0 if it is missing, nullopt if it is no number.
std::optional<uint64_t> NumberIn(const Json& object, std::string_view name) {
  const Json* const member = object.Find(name);
  if (member == nullptr || member->is_null()) return 0;
  if (const std::string* const text = member->string()) {
    // Negative ones (the watch id -1) mean nothing here.
    if (text->starts_with('-')) return 0;
    return ParseDecimal(*text);
  }
  return member->unsigned_integer();
}

bool TrueIn(const Json& object, std::string_view name) {
  const Json* const member = object.Find(name);
  return member != nullptr && member->boolean() != nullptr && *member->boolean();
}

std::optional<std::string> BytesIn(const Json& object, std::string_view name) {
  const Json* const member = object.Find(name);
  if (member == nullptr || member->is_null()) return "";
  if (member->string() == nullptr) return std::nullopt;
  return DecodeBase64(*member->string());
}

std::string MessageText(std::string_view text) {
  std::string out;
  AppendHarmlessLines(out, text.substr(0, EtcdRefusal::kMaxMessage));
  std::ranges::replace(out, '\n', ' ');
  return out.substr(0, EtcdRefusal::kMaxMessage);
}

std::unexpected<Error> Unreadable(std::string_view what) {
  return Fail(Blame::kPeer, "unreadable answer: {}", what);
}

Result<Json> ObjectOf(std::string_view text) {
  auto document = Json::ParseWithLargeNumbers(text);
  if (!document) return Unreadable("not JSON");
  if (document->object() == nullptr) return Unreadable("not a JSON object");
  return document;
}

Result<EtcdHeader> HeaderIn(const Json& message) {
  const Json* const header = message.Find("header");
  if (header == nullptr || header->object() == nullptr) return Unreadable("no header");
  const auto cluster = NumberIn(*header, "cluster_id");
  const auto revision = NumberIn(*header, "revision");
  if (!cluster || !revision) return Unreadable("a number in its header");
  return EtcdHeader{*cluster, *revision};
}

Result<EtcdPair> PairOf(const Json& json) {
  if (json.object() == nullptr) return Unreadable("a key that is no object");
  auto key = BytesIn(json, "key");
  auto value = BytesIn(json, "value");
  if (!key || !value) return Unreadable("a key or value that is not base64");
  const auto changed = NumberIn(json, "mod_revision");
  const auto lease = NumberIn(json, "lease");
  if (!changed || !lease) return Unreadable("a number of a key");
  return EtcdPair{*std::move(key), *std::move(value), *changed, *lease, false};
}

Result<std::vector<EtcdPair>> PairsIn(const Json& range) {
  std::vector<EtcdPair> pairs;
  const Json* const list = range.Find("kvs");
  if (list == nullptr || list->is_null()) return pairs;
  if (list->array() == nullptr) return Unreadable("kvs is no list");
  for (const Json& item : *list->array()) {
    TRY(EtcdPair pair, PairOf(item));
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

Result<EtcdEvent> EventOf(const Json& json) {
  EtcdEvent event;
  const Json* const type = json.Find("type");
  if (type != nullptr && !type->is_null()) {
    const std::string* const name = type->string();
    const auto number = type->unsigned_integer();
    event.gone = (name != nullptr && *name == "DELETE") || number == 1;
    const bool put = (name != nullptr && *name == "PUT") || number == 0;
    if (!event.gone && !put) return Unreadable("an unknown type of event");
  }
  const Json* const pair = json.Find("kv");
  if (pair == nullptr) return Unreadable("an event without a key");
  TRY(event.pair, PairOf(*pair));
  if (event.pair.key.empty()) return Unreadable("an event without a key");
  return event;
}

// {"error": "text"} and {"error": {"message": "text"}}; null if there is none.
const Json* ErrorIn(const Json& message) {
  const Json* const error = message.Find("error");
  return error == nullptr || error->is_null() ? nullptr : error;
}

EtcdRefusal RefusalOf(const Json& message) {
  const Json* const error = ErrorIn(message);
  const Json& holder = error != nullptr && error->object() != nullptr ? *error : message;
  EtcdRefusal refusal;
  for (const std::string_view name : {"grpc_code", "code"}) {
    const auto code = NumberIn(holder, name);
    if (code && *code > 0 && *code < 100) refusal.code = static_cast<int>(*code);
  }
  const Json* text = holder.Find("message");
  if (text == nullptr || text->string() == nullptr) text = error;
  if (text != nullptr && text->string() != nullptr) refusal.message = MessageText(*text->string());
  return refusal;
}

// The answers of a stream are inside "result".
const Json& ResultIn(const Json& message) {
  const Json* const result = message.Find("result");
  return result == nullptr ? message : *result;
}

}  // namespace

Result<EtcdRange> ReadEtcdRange(std::string_view text) {
  TRY(const Json message, ObjectOf(text));
  EtcdRange range;
  TRY(range.header, HeaderIn(message));
  TRY(range.pairs, PairsIn(message));
  range.more = TrueIn(message, "more");
  const auto count = NumberIn(message, "count");
  if (!count) return Unreadable("count is no number");
  range.count = *count;
  return range;
}

Result<EtcdWatchMessage> ReadEtcdWatch(std::string_view line) {
  TRY(const Json message, ObjectOf(line));
  EtcdWatchMessage watch;
  if (ErrorIn(message) != nullptr) {
    watch.canceled = true;
    watch.reason = RefusalOf(message).message;
    return watch;
  }
  const Json& result = ResultIn(message);
  TRY(watch.header, HeaderIn(result));
  watch.created = TrueIn(result, "created");
  watch.canceled = TrueIn(result, "canceled");
  watch.fragment = TrueIn(result, "fragment");
  const auto compacted = NumberIn(result, "compact_revision");
  if (!compacted) return Unreadable("compact_revision is no number");
  watch.compact_revision = *compacted;
  const Json* const reason = result.Find("cancel_reason");
  if (reason != nullptr && reason->string() != nullptr) {
    watch.reason = MessageText(*reason->string());
  }
  const Json* const events = result.Find("events");
  if (events == nullptr || events->is_null()) return watch;
  if (events->array() == nullptr) return Unreadable("events is no list");
  for (const Json& item : *events->array()) {
    TRY(EtcdEvent event, EventOf(item));
    watch.events.push_back(std::move(event));
  }
  return watch;
}

Result<EtcdLease> ReadEtcdLease(std::string_view text) {
  TRY(const Json message, ObjectOf(text));
  if (ErrorIn(message) != nullptr) {
    return Fail(Blame::kPeer, "{}", RefusalOf(message).message);
  }
  const Json& result = ResultIn(message);
  EtcdLease lease;
  TRY(lease.header, HeaderIn(result));
  const auto id = NumberIn(result, "ID");
  const auto ttl = NumberIn(result, "TTL");
  if (!id || !ttl) return Unreadable("the lease's numbers");
  lease.id = *id;
  lease.ttl = *ttl;
  return lease;
}

Result<EtcdTransaction> ReadEtcdTransaction(std::string_view text) {
  TRY(const Json message, ObjectOf(text));
  EtcdTransaction transaction;
  TRY(transaction.header, HeaderIn(message));
  transaction.succeeded = TrueIn(message, "succeeded");
  const Json* const responses = message.Find("responses");
  if (responses == nullptr || responses->array() == nullptr) return transaction;
  for (const Json& response : *responses->array()) {
    const Json* range = response.Find("response_range");
    if (range == nullptr) range = response.Find("responseRange");
    if (range == nullptr) continue;
    TRY(std::vector<EtcdPair> pairs, PairsIn(*range));
    if (!pairs.empty()) transaction.found = std::move(pairs.front());
    break;
  }
  return transaction;
}

Result<std::string> ReadEtcdToken(std::string_view text) {
  TRY(const Json message, ObjectOf(text));
  const Json* const token = message.Find("token");
  if (token == nullptr || token->string() == nullptr || token->string()->empty()) {
    return Unreadable("no token");
  }
  const auto printable = [](unsigned char c) { return c > ' ' && c < 0x7f; };
  if (token->string()->size() > 8192 || !std::ranges::all_of(*token->string(), printable)) {
    return Unreadable("its token");
  }
  return *token->string();
}

Result<EtcdHeader> ReadEtcdHeader(std::string_view text) {
  TRY(const Json message, ObjectOf(text));
  return HeaderIn(message);
}

EtcdRefusal ReadEtcdRefusal(std::string_view body) {
  const auto message = Json::ParseWithLargeNumbers(body);
  if (!message || message->object() == nullptr) return {};
  return RefusalOf(*message);
}

std::string EtcdRangeEnd(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xff) end.pop_back();
  if (end.empty()) return std::string(1, '\0');  // to etcd: every key from there
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

bool EtcdLines::Feed(std::string_view bytes) {
  if (begin_ > 0) {
    held_.erase(0, begin_);
    scanned_ -= begin_;
    begin_ = 0;
  }
  held_ += bytes;
  // The caller has taken all complete messages, so without a newline all bytes are one message's.
  const size_t last = bytes.rfind('\n');
  const size_t open = last == bytes.npos ? held_.size() : bytes.size() - last - 1;
  return open <= max_line_;
}

std::optional<std::string> EtcdLines::Next() {
  for (;;) {
    const size_t end = held_.find('\n', scanned_);
    if (end == held_.npos) {
      scanned_ = held_.size();
      return std::nullopt;
    }
    std::string line = held_.substr(begin_, end - begin_);
    begin_ = scanned_ = end + 1;
    if (!Trim(line).empty()) return line;
  }
}

}  // namespace fathom
