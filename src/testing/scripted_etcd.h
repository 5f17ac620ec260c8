// An etcd that does on demand what a real one does rarely, behind a real socket, for tests.
//
// It answers reads from a table, in pages, and remembers what it was asked. A watch gets the lines
// that the test sends, and ends when the test wants it.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/base64.h"
#include "codec/json.h"
#include "io/etcd/etcd_address.h"
#include "testing/raw_socket.h"

namespace fathom {

class ScriptedEtcd {
 public:
  struct Question {
    std::string path;
    Json body;
    std::string token;
  };
  struct Reply {
    int status = 200;
    std::string body;
  };
  // Answers instead of the table, if it returns something.
  using Override = std::function<std::optional<Reply>(const Question&)>;

  ScriptedEtcd() : server_([this](RawSocket& socket) { Serve(socket); }) {}
  ~ScriptedEtcd() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;  // also for connections that are accepted after this
    }
    EndWatches();
  }

  std::string host() const { return server_.address().ToString(); }
  EtcdAddress address() const { return *EtcdAddress::Parse("etcd://" + host() + "/fleet"); }

  void Put(const std::string& key, const std::string& value) {
    const std::lock_guard lock(mutex_);
    table_[key] = {value, ++revision_};
  }
  void Delete(const std::string& key) {
    const std::lock_guard lock(mutex_);
    ++revision_;
    table_.erase(key);
  }
  // Another cluster, or the same from a backup.
  void Replace(uint64_t cluster, uint64_t revision) {
    const std::lock_guard lock(mutex_);
    cluster_ = cluster;
    revision_ = revision;
    table_.clear();
  }
  void SetOverride(Override override) {
    const std::lock_guard lock(mutex_);
    override_ = std::move(override);
  }

  // To all watches that are open, as it is.
  void Send(std::string text) {
    const std::lock_guard lock(mutex_);
    sent_ += text;
    changed_.notify_all();
  }
  std::string PutLine(const std::string& key, const std::string& value) {
    Put(key, value);
    const std::lock_guard lock(mutex_);
    return Line(R"("events":[{"kv":{"key":")" + EncodeBase64(key) + R"(","value":")" +
                EncodeBase64(value) + R"(","mod_revision":")" + std::to_string(revision_) +
                R"("}}])");
  }
  std::string DeleteLine(const std::string& key) {
    Delete(key);
    const std::lock_guard lock(mutex_);
    return Line(R"("events":[{"type":"DELETE","kv":{"key":")" + EncodeBase64(key) +
                R"(","mod_revision":")" + std::to_string(revision_) + R"("}}])");
  }
  std::string OtherLine(const std::string& members) {
    const std::lock_guard lock(mutex_);
    return Line(members);
  }
  // The connections of all watches are closed.
  void EndWatches() {
    const std::lock_guard lock(mutex_);
    ++era_;
    sent_.clear();
    changed_.notify_all();
  }
  // Watches are accepted and never confirmed.
  void Mute(bool mute) {
    const std::lock_guard lock(mutex_);
    mute_ = mute;
  }

  std::vector<Question> Asked(std::string_view path) {
    const std::lock_guard lock(mutex_);
    std::vector<Question> found;
    for (const Question& question : asked_) {
      if (question.path == path) found.push_back(question);
    }
    return found;
  }
  size_t watches() {
    const std::lock_guard lock(mutex_);
    return watches_;
  }

 private:
  struct Stored {
    std::string value;
    uint64_t changed;
  };

  std::string Header() const {
    return R"("header":{"cluster_id":")" + std::to_string(cluster_) + R"(","revision":")" +
           std::to_string(revision_) + R"("})";
  }
  std::string Line(const std::string& members) const {
    return R"({"result":{)" + Header() + "," + members + "}}\n";
  }
  static std::string Bytes(const Json& body, std::string_view name) {
    const Json* const member = body.Find(name);
    return member == nullptr ? "" : *DecodeBase64(*member->string());
  }

  std::string RangeAnswer(const Json& body) const {
    const std::string begin = Bytes(body, "key");
    const std::string end = Bytes(body, "range_end");
    const Json* const limit = body.Find("limit");
    const size_t most = limit == nullptr ? SIZE_MAX : std::stoul(*limit->string());
    const bool newest = body.Find("sort_order") != nullptr;
    std::vector<std::pair<std::string, Stored>> rows;
    for (const auto& [key, stored] : table_) {
      if (key >= begin && key < end) rows.emplace_back(key, stored);
    }
    const size_t count = rows.size();
    if (newest) {
      std::ranges::sort(
          rows, [](const auto& a, const auto& b) { return a.second.changed > b.second.changed; });
    }
    std::string out = "{" + Header() + R"(,"kvs":[)";
    for (size_t i = 0; i < std::min(most, count); ++i) {
      if (i > 0) out += ",";
      out += R"({"key":")" + EncodeBase64(rows[i].first) + R"(","mod_revision":")" +
             std::to_string(rows[i].second.changed) + R"(","value":")" +
             EncodeBase64(rows[i].second.value) + R"("})";
    }
    out += R"(],"count":")" + std::to_string(count) + R"(")";
    if (count > most) out += R"(,"more":true)";
    return out + "}";
  }

  void Serve(RawSocket& socket) {
    for (;;) {
      const std::string head = socket.ReadUntil("\r\n\r\n");
      if (!head.starts_with("POST ")) return;
      Question question;
      question.path = head.substr(5, head.find(' ', 5) - 5);
      const size_t token = head.find("authorization: ");
      if (token != head.npos) {
        question.token = head.substr(token + 15, head.find('\r', token) - token - 15);
      }
      const size_t length = head.find("content-length: ");
      const std::string body = socket.Read(std::stoul(head.substr(length + 16)));
      question.body = *Json::Parse(body);
      Override override;
      {
        const std::lock_guard lock(mutex_);
        asked_.push_back(question);
        override = override_;
      }
      std::optional<Reply> reply;
      if (override) reply = override(question);
      if (!reply && question.path == "/v3/watch") {
        ServeWatch(socket);
        return;
      }
      if (!reply) {
        const std::lock_guard lock(mutex_);
        reply = Reply{200, RangeAnswer(question.body)};
      }
      socket.Send("HTTP/1.1 " + std::to_string(reply->status) + " X\r\ncontent-length: " +
                  std::to_string(reply->body.size()) + "\r\n\r\n" + reply->body);
    }
  }

  void ServeWatch(RawSocket& socket) {
    std::unique_lock lock(mutex_);
    const uint64_t era = era_;
    ++watches_;
    size_t at = sent_.size();
    std::string out = "HTTP/1.1 200 OK\r\n\r\n";
    if (!mute_) out += Line(R"("created":true)");
    for (;;) {
      lock.unlock();
      const bool sent = socket.Send(out);
      lock.lock();
      if (!sent || over_ || era != era_) break;
      changed_.wait(lock, [&] { return era != era_ || sent_.size() > at; });
      if (era != era_) break;
      out = sent_.substr(at);
      at = sent_.size();
    }
    --watches_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  // All guarded by mutex_.
  std::map<std::string, Stored> table_;
  uint64_t cluster_ = 11;
  uint64_t revision_ = 1;
  Override override_;
  std::vector<Question> asked_;
  std::string sent_;
  uint64_t era_ = 0;
  size_t watches_ = 0;
  bool mute_ = false;
  bool over_ = false;
  ScriptedServer server_;
};

}  // namespace fathom
