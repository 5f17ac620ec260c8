#include "router/library/hub_download.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "router/library/model_search.h"

namespace fathom {
namespace {

// The tokenizer is the last: a snapshot that has it is complete.
constexpr std::string_view kTokenizer = "tokenizer.json";
constexpr std::string_view kFiles[] = {
    "config.json",         "tokenizer_config.json", "generation_config.json",
    "chat_template.jinja", "chat_template.json",    kTokenizer};

enum Wanted : uint8_t {
  kCommit,
  kErrorCode,
  kEtag,
  kLinkedEtag,
  kLinkedSize,
  kLocation,
  kLength,
  kEncoding,
  kWantedHeaders
};
constexpr std::array<std::string_view, kWantedHeaders> kWanted = {
    "x-repo-commit", "x-error-code", "etag",           "x-linked-etag",
    "x-linked-size", "location",     "content-length", "transfer-encoding"};

bool IsRedirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// Revisions may contain slashes.
std::string Escaped(std::string_view revision) {
  std::string out;
  for (const char c : revision) c == '/' ? out.append("%2F") : out.append(1, c);
  return out;
}

bool SameServer(const Url& a, const Url& b) {
  return a.scheme == b.scheme && a.host == b.host && a.port == b.port;
}

std::unexpected<HubFailure> Broken(std::string what) {
  return std::unexpected(HubFailure{std::move(what), false});
}

}  // namespace

// What is asked for next: a server, and a path with its query.
struct HubDownload::Target {
  Url server;
  std::string path;

  // Where an answer of this target leads.
  Result<Target> Follow(std::string_view location) const {
    constexpr size_t kLongest = 8192;
    const bool visible = std::ranges::all_of(location, [](char c) { return c > ' ' && c < 0x7f; });
    if (location.empty() || location.size() > kLongest || !visible) {
      return Fail(Blame::kPeer, "a redirect to an invalid address");
    }
    if (location.starts_with('/') && !location.starts_with("//")) {
      return Target{server, std::string(location.substr(0, location.find('#')))};
    }
    const size_t host = location.find("://");
    if (host == location.npos) return Fail(Blame::kPeer, "a redirect to an invalid address");
    const size_t end = std::min(location.find_first_of("/?#", host + 3), location.size());
    TRY(const Url next, Url::Parse(location.substr(0, end)));
    if (server.tls() && !next.tls()) {
      return Fail(Blame::kPeer, "a redirect from https to http, which is not followed");
    }
    std::string rest(location.substr(end, location.find('#') - end));
    if (!rest.starts_with('/')) rest.insert(0, "/");
    return Target{next, std::move(rest)};
  }
};

struct HubDownload::File {
  int status = 0;
  std::string commit;
  std::string error_code;
  std::string etag;
  std::string size;  // as the hub says; empty: it does not
  std::string body;

  // What the hub itself says, which a server that it redirects to does not.
  void Learn(const FetchAnswer& answer) {
    if (commit.empty()) commit = answer.headers[kCommit];
    if (etag.empty()) {
      etag =
          answer.headers[kLinkedEtag].empty() ? answer.headers[kEtag] : answer.headers[kLinkedEtag];
    }
    if (size.empty()) size = answer.headers[kLinkedSize];
    error_code = answer.headers[kErrorCode];
  }
};

Result<HubDownload> HubDownload::Create(Loop& loop, Resolver& resolver, const HubEnvironment& hub) {
  if (hub.caches.empty()) {
    return Fail(Blame::kCaller,
                "hf: needs a cache to download to: set HF_HOME (none of HF_HUB_CACHE, HF_HOME, "
                "XDG_CACHE_HOME and HOME is set)");
  }
  auto endpoint = Url::Parse(hub.endpoint);
  if (!endpoint) return std::unexpected(std::move(endpoint).error().In("HF_ENDPOINT"));
  auto tls = TlsClientContext::Create(hub.ca_file);
  if (!tls) return std::unexpected(std::move(tls).error().In("REQUESTS_CA_BUNDLE"));
  return HubDownload(loop, resolver, hub, *std::move(endpoint), *std::move(tls));
}

std::optional<std::string> HubDownload::Cached(const HubRef& ref) const {
  for (const std::string& root : hub_.caches) {
    if (auto folder = HubCache(root).Find(ref)) return folder;
  }
  return std::nullopt;
}

Task<std::expected<std::string, HubFailure>> HubDownload::Run(HubRef ref, TimePoint deadline) {
  const auto cached = Cached(ref);
  if (cached && (IsCommit(ref.revision) || hub_.offline)) co_return *cached;
  if (hub_.offline) {
    co_return std::unexpected(HubFailure{
        fmt::format("{}: not in the cache {}, and HF_HUB_OFFLINE is set: download it where the hub "
                    "can be reached, or unset HF_HUB_OFFLINE",
                    ref.ToString(), cache_.root()),
        true});
  }
  std::string commit = IsCommit(ref.revision) ? ref.revision : "";
  for (const std::string_view name : kFiles) {
    const std::string revision = commit.empty() ? ref.revision : commit;
    auto getting = Get(ref, revision, name, std::min(deadline, loop_->now() + kMostPerFile));
    auto got = co_await getting;
    if (!got) co_return std::unexpected(std::move(got).error());
    const bool missing = got->status == 404 && name != kTokenizer &&
                         (got->error_code.empty() || got->error_code == "EntryNotFound");
    if (got->status != 200 && !missing) co_return std::unexpected(Refusal(ref, *got));
    if (commit.empty() && IsCommit(got->commit)) commit = got->commit;
    if (missing) continue;
    if (commit.empty()) {
      co_return Broken(
          fmt::format("{}: the hub's answer names no commit (X-Repo-Commit)", ref.ToString()));
    }
    if (cache_.Find({ref.name, commit})) break;  // all of it is there
    auto stored = cache_.Store(ref, commit, std::string(name), got->etag, got->body);
    if (!stored) {
      co_return std::unexpected(HubFailure{
          fmt::format("{}; set HF_HOME to a folder that can be written to", stored.error().what),
          true});
    }
  }
  if (auto noted = cache_.SetRef(ref, commit); !noted) co_return Broken(noted.error().what);
  co_return cache_.Snapshot(ref.name, commit);
}

Task<std::expected<HubDownload::File, HubFailure>> HubDownload::Get(const HubRef& ref,
                                                                    std::string revision,
                                                                    std::string_view name,
                                                                    TimePoint deadline) {
  File file;
  Target target{endpoint_, fmt::format("/{}/resolve/{}/{}", ref.name, Escaped(revision), name)};
  target.path.insert(0, endpoint_.path);
  target.server.path.clear();
  const std::string what = fmt::format("{}: {}", ref.ToString(), name);
  for (int hop = 0; hop <= kMostRedirects; ++hop) {
    const Endpoint endpoint{.url = target.server, .tls = target.server.tls() ? tls_ : nullptr};
    FetchRequest request;
    request.path = target.path;
    request.headers = {{"accept-encoding", "identity"}, {"user-agent", "fathom"}};
    const bool home = SameServer(target.server, endpoint_);
    if (home && !hub_.token.empty()) {
      request.headers.emplace_back("authorization", "Bearer " + hub_.token);
    }
    request.max_answer =
        name == kTokenizer ? ModelSearch::kMostTokenizerBytes : ModelSearch::kMostBytes;
    request.wanted = kWanted;
    auto fetching = Fetch(*loop_, *resolver_, endpoint, request, deadline);
    auto answer = co_await fetching;
    if (!answer) {
      co_return Broken(fmt::format("{}: {}", what, Unreachable(answer.error().what)));
    }
    if (home) file.Learn(*answer);
    file.status = answer->status;
    if (!IsRedirect(answer->status)) {
      const bool ends = !answer->headers[kLength].empty() || !answer->headers[kEncoding].empty();
      const bool whole = file.size.empty() || file.size == std::to_string(answer->body.size());
      if (file.status == 200 && (!ends || !whole)) {
        co_return Broken(
            fmt::format("{}: the answer has another length than the hub reports", what));
      }
      file.body = std::move(answer->body);
      co_return file;
    }
    auto next = target.Follow(answer->headers[kLocation]);
    if (!next) co_return Broken(fmt::format("{}: {}", what, next.error().what));
    target = *std::move(next);
  }
  co_return Broken(fmt::format("{}: more than {} redirects", what, kMostRedirects));
}

std::string HubDownload::Unreachable(const std::string& why) const {
  std::string text = fmt::format("{}: {}", endpoint_.ToString(), why);
  if (hub_.proxied) text += " (a proxy is set, which the router does not use)";
  return text;
}

HubFailure HubDownload::Refusal(const HubRef& ref, const File& file) const {
  const std::string model = ref.ToString();
  const bool token = !hub_.token.empty();
  const auto refused = [&](std::string why) {
    return HubFailure{
        fmt::format("{}: {} answered {}: {}", model, endpoint_.ToString(), file.status, why), true};
  };
  if (file.error_code == "GatedRepo" || file.status == 403) {
    return refused(
        token ? "the account of HF_TOKEN has no access; accept the model's licence on its page"
              : "access is restricted; accept the model's licence on its page and set HF_TOKEN");
  }
  if (file.error_code == "RevisionNotFound") {
    return refused(
        fmt::format("there is no revision {}; use another one after the @", ref.revision));
  }
  if (file.status == 401) {
    return refused(token ? "HF_TOKEN is not valid, or may not read this model; check the name too"
                         : "there is no such model, or it is private: check the name, or set "
                           "HF_TOKEN");
  }
  if (file.error_code == "RepoNotFound") return refused("there is no such model; check the name");
  if (file.status == 404) {
    return refused(
        "no tokenizer.json there; name the revision after an @, or a folder that has one");
  }
  return {fmt::format("{}: {} answered {}", model, endpoint_.ToString(), file.status), false};
}

namespace {

Task<void> DownloadToEnd(HubDownload& download, HubRef ref, Loop& loop,
                         std::expected<std::string, HubFailure>& result) {
  constexpr Duration kPatience = std::chrono::minutes(5);
  auto downloading = download.Run(std::move(ref), loop.now() + kPatience);
  result = co_await downloading;
  loop.Stop();
}

}  // namespace

Result<std::string> FolderFromHub(std::string_view text, const HubEnvironment& hub) {
  TRY(HubRef ref, HubRef::Parse(text));
  Loop loop;
  Resolver resolver;
  TRY(HubDownload download, HubDownload::Create(loop, resolver, hub));
  std::expected<std::string, HubFailure> result;
  loop.Post([&] { Spawn(DownloadToEnd(download, ref, loop, result)); });
  loop.Run();
  resolver.Stop();
  if (result) return *std::move(result);
  if (auto cached = download.Cached(ref)) return *std::move(cached);
  return Fail(Blame::kCaller, "{}", result.error().what);
}

}  // namespace fathom
