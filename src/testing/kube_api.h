// A small Kubernetes API on a real socket, for tests: one kind of objects in one namespace, with
// versions, pages, watches and what goes wrong with them.
//
//   KubeApi api;
//   api.Put("a", R"("weight": 1)");
//   ...                                         // something that follows api.url()
//   api.Compact();
//   api.EndWatches(KubeApi::End::kGoneEvent);
//
// It keeps its history as the real one does: a watch begins behind the version that it names, and
// is refused (410) where that has been compacted. Pages are of the version of the first one.
//
// Threads  All functions from any thread.
#pragma once

#include <fmt/format.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "testing/raw_socket.h"

namespace fathom {

class KubeApi {
 public:
  // How the watches that are open come to an end.
  enum class End : uint8_t {
    kOrderly,    // the last chunk
    kCut,        // the connection closes
    kHalfLine,   // half an event, then the connection closes
    kHalfEvent,  // half an event, then the last chunk
    kGarbage,    // a line that is no event
    kGoneEvent,  // 410 as an event
  };
  // Answers a request instead of the API. `target` is path and query.
  using Script = std::function<void(RawSocket& client, const std::string& target)>;

  KubeApi() : server_([this](RawSocket& client) { Serve(client); }) {}
  ~KubeApi() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    server_.Stop();
  }

  std::string url() const { return server_.url(); }

  // `members` is what the object has beside its metadata: "\"spec\": {...}". Made or changed.
  void Put(const std::string& name, const std::string& members, const std::string& uid = "u") {
    const std::lock_guard lock(mutex_);
    const bool known = objects_.contains(name);
    objects_[name] = ObjectText(name, members, uid, ++version_);
    history_.push_back({version_, known ? "MODIFIED" : "ADDED", objects_[name]});
    changed_.notify_all();
  }
  void Delete(const std::string& name) {
    const std::lock_guard lock(mutex_);
    if (objects_.erase(name) == 0) return;
    ++version_;
    history_.push_back({version_, "DELETED", ObjectText(name, "\"last\": true", "u", version_)});
    changed_.notify_all();
  }
  // Something else in the cluster has changed: the version moves, and open watches are told so.
  void Bookmark() {
    const std::lock_guard lock(mutex_);
    ++version_;
    history_.push_back({version_, "BOOKMARK",
                        fmt::format(R"({{"metadata":{{"resourceVersion":"{}"}}}})", version_)});
    changed_.notify_all();
  }
  // Every version before the present one is 410 from now on, as are pages that are being read.
  void Compact() {
    const std::lock_guard lock(mutex_);
    compacted_ = version_;
    pages_.clear();
  }
  void EndWatches(End how) {
    const std::lock_guard lock(mutex_);
    ++ends_;
    end_ = how;
    changed_.notify_all();
  }
  // The next requests are answered by these, in this order.
  void Answer(Script script) {
    const std::lock_guard lock(mutex_);
    scripts_.push_back(std::move(script));
  }
  void AnswerWith(int status, std::string headers, std::string body) {
    Answer([=](RawSocket& client, const std::string&) {
      client.Send(fmt::format("HTTP/1.1 {} X\r\n{}content-length: {}\r\n\r\n{}", status, headers,
                              body.size(), body));
    });
  }

  // Targets, in the order of arrival.
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  size_t lists() const { return Count("limit="); }
  size_t watches() const { return Count("watch=true"); }
  // Of the last watch that was asked for.
  std::string watched_from() const {
    const std::lock_guard lock(mutex_);
    for (auto target = requests_.rbegin(); target != requests_.rend(); ++target) {
      if (target->contains("watch=true")) return Parameter(*target, "resourceVersion");
    }
    return "";
  }
  std::string version() const {
    const std::lock_guard lock(mutex_);
    return std::to_string(version_);
  }
  // Watches that are open now.
  size_t open_watches() const {
    const std::lock_guard lock(mutex_);
    return open_;
  }
  std::map<std::string, std::string> objects() const {
    const std::lock_guard lock(mutex_);
    return objects_;
  }

  static std::string Parameter(const std::string& target, std::string_view name) {
    const std::string key = std::string(name) + "=";
    size_t at = target.find("?" + key);
    if (at == std::string::npos) at = target.find("&" + key);
    if (at == std::string::npos) return "";
    at += key.size() + 1;
    return target.substr(at, target.find('&', at) - at);
  }

 private:
  struct Event {
    uint64_t version;
    std::string type;
    std::string object;
  };
  using Lock = std::unique_lock<std::mutex>;

  static constexpr std::string_view kJson = "content-type: application/json\r\n";

  static std::string ObjectText(const std::string& name, const std::string& members,
                                const std::string& uid, uint64_t version) {
    return fmt::format(
        R"({{"metadata":{{"name":"{}","uid":"{}","resourceVersion":"{}","managedFields":[{}]}},{}}})",
        name, uid, version, version, members);
  }

  static bool SendChunk(RawSocket& client, std::string_view text) {
    return client.Send(fmt::format("{:x}\r\n{}\r\n", text.size(), text));
  }

  size_t Count(std::string_view word) const {
    const std::lock_guard lock(mutex_);
    size_t count = 0;
    for (const std::string& target : requests_) count += target.contains(word) ? 1 : 0;
    return count;
  }

  void Serve(RawSocket& client) {
    const std::string head = client.ReadUntil("\r\n\r\n");
    if (!head.ends_with("\r\n\r\n")) return;  // the client has left
    const size_t begin = head.find(' ') + 1;
    const std::string target = head.substr(begin, head.find(' ', begin) - begin);
    Script script;
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(target);
      if (!scripts_.empty()) {
        script = std::move(scripts_.front());
        scripts_.pop_front();
      }
    }
    if (script) return script(client, target);
    if (target.contains("watch=true")) return Watch(client, target);
    List(client, target);
  }

  void Send(RawSocket& client, int status, std::string_view body) {
    client.Send(fmt::format("HTTP/1.1 {} X\r\n{}content-length: {}\r\n\r\n{}", status, kJson,
                            body.size(), body));
  }

  void List(RawSocket& client, const std::string& target) {
    const size_t limit = std::stoul(Parameter(target, "limit"));
    std::string token = Parameter(target, "continue");
    Lock lock(mutex_);
    if (token.empty()) {
      token = fmt::format("p{}", ++tokens_);
      Pages pages{.version = version_, .objects = {}};
      for (const auto& [name, object] : objects_) pages.objects.push_back(object);
      pages_[token] = std::move(pages);
    }
    const auto found = pages_.find(token);
    if (found == pages_.end()) {
      lock.unlock();
      return Send(client, 410, R"({"kind":"Status","code":410,"reason":"Expired"})");
    }
    Pages& pages = found->second;
    std::string items;
    for (size_t i = 0; i < limit && !pages.objects.empty(); ++i) {
      items += (items.empty() ? "" : ",") + pages.objects.front();
      pages.objects.pop_front();
    }
    const bool last = pages.objects.empty();
    const std::string body =
        fmt::format(R"({{"kind":"List","metadata":{{"resourceVersion":"{}"{}}},"items":[{}]}})",
                    pages.version, last ? "" : fmt::format(R"(,"continue":"{}")", token), items);
    if (last) pages_.erase(found);
    lock.unlock();
    Send(client, 200, body);
  }

  void Watch(RawSocket& client, const std::string& target) {
    uint64_t from = std::stoull(Parameter(target, "resourceVersion"));
    Lock lock(mutex_);
    const uint64_t ends = ends_;
    const bool gone = from < compacted_;
    ++open_;
    lock.unlock();
    bool alive =
        client.Send(fmt::format("HTTP/1.1 200 OK\r\n{}transfer-encoding: chunked\r\n\r\n", kJson));
    if (gone) Finish(client, End::kGoneEvent);
    lock.lock();
    while (alive && !gone && !stopping_ && ends_ == ends) {
      std::string text;
      for (const Event& event : history_) {
        if (event.version <= from) continue;
        text += fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", event.type, event.object);
        from = event.version;
      }
      if (text.empty()) {
        changed_.wait(lock);
        continue;
      }
      lock.unlock();
      alive = SendChunk(client, text);
      lock.lock();
    }
    const End how = end_;
    const bool told = ends_ != ends;
    --open_;
    lock.unlock();
    if (alive && !gone && told) Finish(client, how);
  }

  static void Finish(RawSocket& client, End how) {
    constexpr std::string_view kHalf = R"({"type":"MODIFIED","object":{"metadata":{"na)";
    constexpr std::string_view kLast = "0\r\n\r\n";
    switch (how) {
      case End::kOrderly:
        client.Send(kLast);
        break;
      case End::kCut:
        break;
      case End::kHalfLine:
        SendChunk(client, kHalf);
        break;
      case End::kHalfEvent:
        SendChunk(client, kHalf);
        client.Send(kLast);
        break;
      case End::kGarbage:
        SendChunk(client, "<html>not an event</html>\n");
        client.Send(kLast);
        break;
      case End::kGoneEvent:
        SendChunk(client,
                  R"({"type":"ERROR","object":{"kind":"Status","reason":"Expired","code":410}})"
                  "\n");
        client.Send(kLast);
        break;
    }
  }

  struct Pages {
    uint64_t version = 0;
    std::deque<std::string> objects;
  };

  mutable std::mutex mutex_;  // guards all below but server_
  std::condition_variable changed_;
  std::map<std::string, std::string> objects_;
  std::vector<Event> history_;
  std::map<std::string, Pages> pages_;
  std::deque<Script> scripts_;
  std::vector<std::string> requests_;
  uint64_t version_ = 100;
  uint64_t compacted_ = 0;
  uint64_t ends_ = 0;
  uint64_t tokens_ = 0;
  size_t open_ = 0;
  End end_ = End::kOrderly;
  bool stopping_ = false;
  ScriptedServer server_;
};

}  // namespace fathom
