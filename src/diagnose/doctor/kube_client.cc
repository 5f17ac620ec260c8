#include "diagnose/doctor/kube_client.h"

#include <algorithm>

#include "codec/base64.h"
#include "diagnose/doctor/peer_text.h"
#include "io/client/answer_reader.h"
#include "io/http/fetch.h"

namespace fathom {
namespace {

std::string PathOf(const KubeResource& resource, std::string_view network_namespace) {
  const std::string root = resource.group.empty()
                               ? fmt::format("/api/{}", resource.version)
                               : fmt::format("/apis/{}/{}", resource.group, resource.version);
  return fmt::format("{}/namespaces/{}/{}", root, network_namespace, resource.plural);
}

// For names of objects and tokens of pages, which are nobody's promise.
std::string PercentEncode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-_.~").contains(c);
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

// Nothing that would end or split a header.
bool IsToken(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return c > ' ' && c < 0x7f; });
}

std::string AuthorizationOf(const KubeAccess& access) {
  const KubeIdentity& identity = access.identity;
  if (!access.server.tls()) return "";
  if (!identity.token.empty()) return "Bearer " + identity.token;
  if (identity.username.empty()) return "";
  return "Basic " + EncodeBase64(identity.username + ":" + identity.password);
}

// What the operator should do about an answer that is not 200.
Error Refused(int status, std::string_view verb, std::string_view what,
              std::string_view network_namespace, std::string_view group) {
  if (status == 401) {
    return {Blame::kPeer,
            "401 unauthorized: the API server rejects these credentials; log in again, and try "
            "kubectl get pods"};
  }
  if (status == 403) {
    return {Blame::kPeer,
            fmt::format("403 forbidden: cannot {} {} in namespace {}; ask for a Role with verb {} "
                        "on {} of API group \"{}\" (check with kubectl auth can-i {} {} -n {})",
                        verb, what, network_namespace, verb, what, group, verb, what,
                        network_namespace)};
  }
  return {Blame::kPeer, fmt::format("the API server answered {}", status)};
}

}  // namespace

Result<std::unique_ptr<KubeClient>> KubeClient::Create(Loop& loop, Resolver& resolver,
                                                       SentRequests& sent, const KubeAccess& access,
                                                       Duration patience) {
  if (!IsToken(access.identity.token)) {
    return Fail(Blame::kCaller, "{}: its token contains invalid bytes", access.origin);
  }
  Endpoint endpoint{access.server, nullptr, access.tls_server_name};
  if (access.server.tls()) {
    auto tls = TlsClientContext::FromPem({.authorities = access.authorities,
                                          .certificate = access.identity.certificate,
                                          .key = access.identity.key});
    if (!tls) return std::unexpected(std::move(tls).error().In(access.origin));
    endpoint.tls = *std::move(tls);
  }
  return std::unique_ptr<KubeClient>(
      new KubeClient(loop, resolver, sent, std::move(endpoint), AuthorizationOf(access), patience));
}

FetchRequest KubeClient::Ask(std::string_view path, std::string_view query) {
  sent_.Count("GET", url() + std::string(path));
  FetchRequest request;
  request.path = fmt::format("{}?{}", path, query);
  request.headers.emplace_back("accept", "application/json");
  if (!authorization_.empty()) request.headers.emplace_back("authorization", authorization_);
  return request;
}

Task<Result<KubeList>> KubeClient::List(KubeResource resource, std::string network_namespace) {
  KubeList list;
  ListProgress progress{.path = PathOf(resource, network_namespace)};
  do {
    auto reading = ReadPage(progress, list);
    auto status = co_await reading;
    if (!status) co_return std::unexpected(std::move(status).error());
    if (*status == 404) {
      list.known = false;
      co_return std::move(list);
    }
    // A page that is no longer there ends the list; what came before is good.
    if (*status == 410 && !list.objects.empty()) {
      list.incomplete = "the list changed while it was read";
      co_return std::move(list);
    }
    if (*status != 200) {
      co_return std::unexpected(
          Refused(*status, "list", resource.plural, network_namespace, resource.group));
    }
  } while (!progress.next.empty() && list.incomplete.empty());
  co_return std::move(list);
}

Task<Result<int>> KubeClient::ReadPage(ListProgress& progress, KubeList& list) {
  std::string query = fmt::format("limit={}", kPage);
  if (!progress.next.empty()) query += "&continue=" + PercentEncode(progress.next);
  FetchRequest request = Ask(progress.path, query);
  request.max_answer = kMaxListBytes - progress.bytes;
  auto fetching = Fetch(loop_, resolver_, endpoint_, request, loop_.now() + patience_);
  auto answer = co_await fetching;
  if (!answer) co_return std::unexpected(std::move(answer).error());
  if (answer->status != 200) co_return answer->status;
  progress.bytes += answer->body.size();
  auto page = Json::ParseWithLargeNumbers(answer->body);
  const Json* const items = page ? page->Find("items") : nullptr;
  if (items == nullptr || items->array() == nullptr) {
    co_return Fail(Blame::kPeer, "the answer is not a list of objects");
  }
  TakeItems(*items->array(), list);
  const Json* const metadata = page->Find("metadata");
  const Json* const next = metadata == nullptr ? nullptr : metadata->Find("continue");
  const bool more = next != nullptr && next->string() != nullptr;
  progress.next = more ? *next->string() : "";
  co_return 200;
}

void KubeClient::TakeItems(const Json::Array& items, KubeList& list) {
  for (const Json& item : items) {
    if (list.objects.size() == kMaxObjects) {
      list.incomplete = fmt::format("only the first {} were read", kMaxObjects);
      return;
    }
    if (item.object() != nullptr) list.objects.push_back(item);
  }
}

Task<Result<size_t>> KubeClient::ReadLog(std::string network_namespace, std::string pod,
                                         std::string container, size_t lines, Sink sink) {
  const std::string path =
      fmt::format("/api/v1/namespaces/{}/pods/{}/log", network_namespace, PercentEncode(pod));
  const FetchRequest request =
      Ask(path, fmt::format("container={}&tailLines={}", PercentEncode(container), lines));
  ClientConnection connection(loop_);
  auto opening = connection.Open(endpoint_, resolver_, loop_.now() + patience_);
  auto opened = co_await opening;
  if (!opened) co_return std::unexpected(std::move(opened).error());
  std::string head;
  AppendRequestHead(head, request.method, endpoint_.Called(), request.path);
  head += "connection: close\r\n";
  for (const auto& [name, value] : request.headers) head += fmt::format("{}: {}\r\n", name, value);
  head += "\r\n";
  auto sending = SendRequest(connection, head, loop_.now() + patience_);
  auto sent = co_await sending;
  if (!sent) co_return std::unexpected(std::move(sent).error());
  auto relaying = Relay(connection, sink);
  auto relayed = co_await relaying;
  if (!relayed) co_return std::unexpected(std::move(relayed).error());
  if (relayed->status == 200) co_return relayed->bytes;
  co_return std::unexpected(Refused(relayed->status, "get", "pods/log", network_namespace, ""));
}

Task<Result<KubeClient::RelayedLog>> KubeClient::Relay(ClientConnection& connection,
                                                       const Sink& sink) {
  RelayedLog log;
  AnswerReader answer(connection, loop_.now() + kLogPatience);
  while (!answer.over() && log.bytes < kMaxLogBytes) {
    auto reading = answer.Read();
    auto read = co_await reading;
    if (!read) co_return std::unexpected(std::move(read).error());
    log.status = answer.head().status;
    if (log.status != 200) co_return log;
    for (const std::string_view piece : answer.pieces()) {
      const std::string_view wanted = piece.substr(0, kMaxLogBytes - log.bytes);
      sink(wanted);
      log.bytes += wanted.size();
    }
  }
  co_return log;
}

}  // namespace fathom
