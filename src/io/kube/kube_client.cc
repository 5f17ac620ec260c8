#include "io/kube/kube_client.h"

#include <algorithm>

#include "codec/percent_encode.h"
#include "io/kube/kube_trouble.h"

namespace fathom {
namespace {

Error Refusal(int status, std::string_view verb, std::string_view what,
              std::string_view network_namespace, std::string_view group) {
  return {Blame::kPeer, RefusalWords(status, verb, what, network_namespace, group)};
}

}  // namespace

Result<std::unique_ptr<KubeClient>> KubeClient::Create(Loop& loop, Resolver& resolver,
                                                       const KubeAccess& access,
                                                       KubeClientOptions options) {
  TRY(auto login, KubeLogin::Create(loop, access));
  return std::unique_ptr<KubeClient>(
      new KubeClient(loop, resolver, access, std::move(login), std::move(options)));
}

void KubeClient::Announce(const std::string& path) {
  if (options_.on_request) options_.on_request("GET", url_ + path);
}

Task<Result<void>> KubeClient::Ask(KubeCall& call, std::string path, std::string_view query) {
  auto entering = Enter();
  auto pass = co_await entering;
  if (!pass) co_return std::unexpected(std::move(pass).error());
  Announce(path);
  path.append("?").append(query);
  auto sending = call.Send(**pass, path, loop_.now() + options_.patience);
  auto sent = co_await sending;
  if (sent && call.status() == 401) Refused(*pass);
  co_return sent;
}

Task<Result<KubeList>> KubeClient::List(KubeResource resource, std::string network_namespace) {
  KubeList list;
  ListProgress progress{.path = KubePath(resource, network_namespace)};
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
          Refusal(*status, "list", resource.plural, network_namespace, resource.group));
    }
  } while (!progress.next.empty() && list.incomplete.empty());
  co_return std::move(list);
}

Task<Result<int>> KubeClient::ReadPage(ListProgress& progress, KubeList& list) {
  std::string query = fmt::format("limit={}", kPage);
  if (!progress.next.empty()) query += "&continue=" + PercentEncode(progress.next);
  KubeCall call(loop_, resolver_);
  auto asking = Ask(call, progress.path, query);
  auto asked = co_await asking;
  if (!asked) co_return std::unexpected(std::move(asked).error());
  if (call.status() != 200) co_return call.status();
  auto reading = call.ReadAll(kMaxListBytes - progress.bytes);
  auto body = co_await reading;
  if (!body) co_return std::unexpected(std::move(body).error());
  progress.bytes += body->size();
  auto page = Json::ParseWithLargeNumbers(*body);
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
  KubeCall call(loop_, resolver_);
  const std::string query =
      fmt::format("container={}&tailLines={}", PercentEncode(container), lines);
  auto asking = Ask(call, path, query);
  auto asked = co_await asking;
  if (!asked) co_return std::unexpected(std::move(asked).error());
  if (call.status() != 200) {
    co_return std::unexpected(Refusal(call.status(), "get", "pods/log", network_namespace, ""));
  }
  auto relaying = Relay(call, sink);
  auto relayed = co_await relaying;
  co_return relayed;
}

Task<Result<size_t>> KubeClient::Relay(KubeCall& call, const Sink& sink) {
  size_t bytes = 0;
  call.set_deadline(loop_.now() + kLogPatience);
  for (;;) {
    for (const std::string_view piece : call.pieces()) {
      const std::string_view wanted = piece.substr(0, kMaxLogBytes - bytes);
      sink(wanted);
      bytes += wanted.size();
    }
    if (call.over() || bytes == kMaxLogBytes) co_return bytes;
    auto reading = call.Read();
    auto read = co_await reading;
    if (!read) co_return std::unexpected(std::move(read).error());
  }
}

}  // namespace fathom
