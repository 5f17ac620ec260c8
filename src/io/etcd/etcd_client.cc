#include "io/etcd/etcd_client.h"

#include <algorithm>
#include <utility>

#include "codec/base64.h"
#include "codec/json.h"

namespace fathom {
namespace {

// Of google.rpc.Code.
constexpr int kGrpcCanceled = 1;
constexpr int kGrpcDeadlineExceeded = 4;
constexpr int kGrpcNotFound = 5;
constexpr int kGrpcPermissionDenied = 7;
constexpr int kGrpcFailedPrecondition = 9;
constexpr int kGrpcOutOfRange = 11;
constexpr int kGrpcUnavailable = 14;
constexpr int kGrpcUnauthenticated = 16;

constexpr size_t kSmallAnswer = 64 << 10;

std::unexpected<EtcdError> EtcdFail(EtcdCause cause, std::string what, int detail = 0) {
  return std::unexpected(EtcdError{{Blame::kPeer, std::move(what)}, cause, detail});
}

EtcdError Unreached(const NetError& error) {
  EtcdCause cause = EtcdCause::kUnreachable;
  if (error.cause == NetCause::kCancelled) cause = EtcdCause::kCancelled;
  if (error.cause == NetCause::kBadAnswer) cause = EtcdCause::kBadAnswer;
  return {{Blame::kPeer, error.what}, cause, 1000 + static_cast<int>(error.cause)};
}

// Another member may do better.
bool AnotherMayAnswer(EtcdCause cause) {
  return cause == EtcdCause::kUnreachable || cause == EtcdCause::kBadAnswer;
}

EtcdCause CauseOfRefusal(int status, const EtcdRefusal& refusal) {
  const std::string_view text = refusal.message;
  // etcd reports both as invalid arguments.
  if (text.contains("user name is empty") || text.contains("auth store is old") ||
      text.contains("invalid auth token") || text.contains("authentication failed")) {
    return EtcdCause::kUnauthenticated;
  }
  switch (refusal.code) {
    case kGrpcUnauthenticated:
      return EtcdCause::kUnauthenticated;
    case kGrpcPermissionDenied:
      return EtcdCause::kDenied;
    case kGrpcNotFound:
      return text.contains("lease") ? EtcdCause::kNoLease : EtcdCause::kRefused;
    case kGrpcOutOfRange:
      return text.contains("compacted") ? EtcdCause::kCompacted : EtcdCause::kRefused;
    case kGrpcCanceled:
    case kGrpcUnavailable:
    case kGrpcDeadlineExceeded:
      return EtcdCause::kUnreachable;
    case 0:
      if (status == 401) return EtcdCause::kUnauthenticated;
      return status >= 500 ? EtcdCause::kUnreachable : EtcdCause::kBadAnswer;
    default:
      return EtcdCause::kRefused;
  }
}

template <class T>
EtcdResult<T> Understood(EtcdResult<std::string> answer, Result<T> (*read)(std::string_view text)) {
  if (!answer) return std::unexpected(std::move(answer).error());
  auto value = read(*answer);
  if (!value) return EtcdFail(EtcdCause::kBadAnswer, std::move(value).error().what);
  return *std::move(value);
}

void WritePair(JsonWriter& out, const std::string& key, const std::string& value, uint64_t lease) {
  out.BeginObject().Key("key").String(EncodeBase64(key));
  out.Key("value").String(EncodeBase64(value));
  out.Key("lease").String(std::to_string(lease)).EndObject();
}

// The failure branch of a transaction: what is there?
void WriteLook(JsonWriter& out, const std::string& key) {
  out.Key("failure").BeginArray().BeginObject().Key("requestRange").BeginObject();
  out.Key("key").String(EncodeBase64(key)).EndObject().EndObject().EndArray();
}

std::string LeaseBody(uint64_t lease) {
  JsonWriter out;
  out.BeginObject().Key("ID").String(std::to_string(lease)).EndObject();
  return out.Take();
}

}  // namespace

EtcdError EtcdErrorOf(int status, std::string_view body) {
  const EtcdRefusal refusal = ReadEtcdRefusal(body);
  std::string what = refusal.message;
  if (what.empty() && status == 404) {
    what = "404: no JSON gateway at /v3; etcd 3.4 or later is needed";
  }
  if (what.empty()) what = fmt::format("etcd answered {}", status);
  const int detail = refusal.code != 0 ? refusal.code : status;
  return {{Blame::kPeer, std::move(what)}, CauseOfRefusal(status, refusal), detail};
}

Result<std::unique_ptr<EtcdClient>> EtcdClient::Create(Loop& loop, Resolver& resolver,
                                                       const EtcdAddress& address,
                                                       EtcdClientOptions options) {
  std::shared_ptr<const TlsClientContext> tls;
  if (address.tls()) {
    TRY(tls, TlsClientContext::Create(options.ca_file));
  }
  std::unique_ptr<EtcdClient> client(new EtcdClient(loop, resolver, std::move(options)));
  for (const Url& host : address.hosts) {
    auto endpoint = std::make_shared<const Endpoint>(Endpoint{host, tls});
    auto caller = std::make_unique<Caller>(loop, resolver, endpoint);
    client->members_.push_back({std::move(endpoint), std::move(caller)});
  }
  return client;
}

void EtcdClient::Cancel() {
  cancelled_ = true;
  for (Member& member : members_) member.caller->Cancel();
}

Task<EtcdResult<std::string>> EtcdClient::Post(const std::string& path, const std::string& body,
                                               size_t max_answer) {
  FetchRequest request;
  request.method = "POST";
  request.path = path;
  request.body = body;
  request.max_answer = max_answer;
  if (!token_.empty()) request.headers.emplace_back("authorization", token_);
  const size_t at = member_;
  const std::string host = members_[at].endpoint->url.HostHeader();
  auto fetching = members_[at].caller->Fetch(request, loop_.now() + options_.patience);
  auto answer = co_await fetching;
  if (!answer) {
    EtcdError error = Unreached(answer.error());
    error.what.insert(0, host + ": ");
    co_return std::unexpected(std::move(error));
  }
  if (answer->status != 200) {
    EtcdError error = EtcdErrorOf(answer->status, answer->body);
    error.what.insert(0, host + ": ");
    co_return std::unexpected(std::move(error));
  }
  co_return std::move(answer->body);
}

Task<EtcdResult<void>> EtcdClient::Authenticate() {
  token_.clear();
  JsonWriter body;
  body.BeginObject().Key("name").String(options_.login.user);
  body.Key("password").String(options_.login.password).EndObject();
  const std::string path = "/v3/auth/authenticate";
  const std::string text = body.Take();
  auto posting = Post(path, text, kSmallAnswer);
  auto answer = co_await posting;
  if (!answer && answer.error().detail == kGrpcFailedPrecondition) {
    no_accounts_ = true;
    co_return EtcdResult<void>();
  }
  auto token = Understood<std::string>(std::move(answer), &ReadEtcdToken);
  if (!token) co_return std::unexpected(std::move(token).error());
  token_ = *std::move(token);
  no_accounts_ = false;
  co_return EtcdResult<void>();
}

Task<EtcdResult<std::string>> EtcdClient::CallMember(const std::string& path,
                                                     const std::string& body, size_t max_answer) {
  const bool accounts = !options_.login.user.empty();
  bool fresh = false;
  if (accounts && token_.empty() && !no_accounts_) {
    auto authenticating = Authenticate();
    auto authenticated = co_await authenticating;
    if (!authenticated) co_return std::unexpected(std::move(authenticated).error());
    fresh = true;
  }
  auto posting = Post(path, body, max_answer);
  auto answer = co_await posting;
  const bool refused = !answer && answer.error().cause == EtcdCause::kUnauthenticated;
  if (!refused || !accounts || fresh || cancelled_) co_return answer;
  auto renewing = Authenticate();
  auto renewed = co_await renewing;
  if (!renewed) co_return std::unexpected(std::move(renewed).error());
  auto again = Post(path, body, max_answer);
  auto second = co_await again;
  co_return second;
}

Task<EtcdResult<std::string>> EtcdClient::Call(std::string path, std::string body,
                                               size_t max_answer) {
  EtcdResult<std::string> answer;
  for (size_t tries = 0; tries < members_.size(); ++tries) {
    if (cancelled_) co_return EtcdFail(EtcdCause::kCancelled, "cancelled");
    auto calling = CallMember(path, body, max_answer);
    answer = co_await calling;
    if (answer || !AnotherMayAnswer(answer.error().cause)) break;
    MoveOn();
  }
  co_return answer;
}

Task<EtcdResult<EtcdRange>> EtcdClient::Range(EtcdQuery query) {
  JsonWriter body;
  body.BeginObject().Key("key").String(EncodeBase64(query.key));
  if (!query.range_end.empty()) body.Key("range_end").String(EncodeBase64(query.range_end));
  if (query.limit > 0) body.Key("limit").String(std::to_string(query.limit));
  if (query.revision > 0) body.Key("revision").String(std::to_string(query.revision));
  if (query.keys_only) body.Key("keys_only").Bool(true);
  if (query.newest_first) body.Key("sort_order").String("DESCEND").Key("sort_target").String("MOD");
  body.EndObject();
  auto calling = Call("/v3/kv/range", body.Take(), query.max_answer);
  auto answer = co_await calling;
  co_return Understood<EtcdRange>(std::move(answer), &ReadEtcdRange);
}

Task<EtcdResult<EtcdHeader>> EtcdClient::Put(std::string key, std::string value, uint64_t lease) {
  JsonWriter body;
  WritePair(body, key, value, lease);
  auto calling = Call("/v3/kv/put", body.Take(), kSmallAnswer);
  auto answer = co_await calling;
  co_return Understood<EtcdHeader>(std::move(answer), &ReadEtcdHeader);
}

Task<EtcdResult<EtcdTransaction>> EtcdClient::PutIfAbsent(std::string key, std::string value,
                                                          uint64_t lease) {
  JsonWriter body;
  body.BeginObject().Key("compare").BeginArray().BeginObject();
  body.Key("key").String(EncodeBase64(key)).Key("target").String("CREATE");
  body.Key("create_revision").String("0").EndObject().EndArray();
  body.Key("success").BeginArray().BeginObject().Key("requestPut");
  WritePair(body, key, value, lease);
  body.EndObject().EndArray();
  WriteLook(body, key);
  body.EndObject();
  auto calling = Call("/v3/kv/txn", body.Take(), 4 << 20);
  auto answer = co_await calling;
  co_return Understood<EtcdTransaction>(std::move(answer), &ReadEtcdTransaction);
}

Task<EtcdResult<EtcdTransaction>> EtcdClient::DeleteIfLeased(std::string key, uint64_t lease) {
  JsonWriter body;
  body.BeginObject().Key("compare").BeginArray().BeginObject();
  body.Key("key").String(EncodeBase64(key)).Key("target").String("LEASE");
  body.Key("lease").String(std::to_string(lease)).EndObject().EndArray();
  body.Key("success").BeginArray().BeginObject().Key("requestDeleteRange").BeginObject();
  body.Key("key").String(EncodeBase64(key)).EndObject().EndObject().EndArray();
  WriteLook(body, key);
  body.EndObject();
  auto calling = Call("/v3/kv/txn", body.Take(), 4 << 20);
  auto answer = co_await calling;
  co_return Understood<EtcdTransaction>(std::move(answer), &ReadEtcdTransaction);
}

Task<EtcdResult<EtcdLease>> EtcdClient::Grant(Duration ttl) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(ttl).count();
  JsonWriter body;
  body.BeginObject().Key("TTL").String(std::to_string(seconds)).EndObject();
  auto calling = Call("/v3/lease/grant", body.Take(), kSmallAnswer);
  auto answer = co_await calling;
  auto lease = Understood<EtcdLease>(std::move(answer), &ReadEtcdLease);
  if (lease && lease->id == 0) co_return EtcdFail(EtcdCause::kBadAnswer, "a lease without an id");
  co_return lease;
}

Task<EtcdResult<EtcdLease>> EtcdClient::KeepAlive(uint64_t lease) {
  // A stream that etcd ends by itself after it has answered the one request.
  auto calling = Call("/v3/lease/keepalive", LeaseBody(lease), kSmallAnswer);
  auto answer = co_await calling;
  auto kept = Understood<EtcdLease>(std::move(answer), &ReadEtcdLease);
  if (kept && kept->ttl == 0) co_return EtcdFail(EtcdCause::kNoLease, "the lease has expired");
  co_return kept;
}

Task<EtcdResult<EtcdHeader>> EtcdClient::Revoke(uint64_t lease) {
  auto calling = Call("/v3/lease/revoke", LeaseBody(lease), kSmallAnswer);
  auto answer = co_await calling;
  co_return Understood<EtcdHeader>(std::move(answer), &ReadEtcdHeader);
}

}  // namespace fathom
