// A server that answers from a list of pages and records its requests, for tests.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "testing/loopback_server.h"

namespace fathom {

class PageServer final : private HttpHandler {
 public:
  struct Page {
    int status = 200;
    std::string body;
  };
  using Pages = std::map<std::string, Page>;  // by "GET /health", without the query

  explicit PageServer(Pages pages) : pages_(std::move(pages)), server_(thread_, *this) {}

  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_.address().port()); }

  // "GET /debug/decisions?limit=100", in the order of arrival.
  std::vector<std::string> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  // Of the last request; empty: none.
  std::string authorization() {
    const std::lock_guard lock(mutex_);
    return authorization_;
  }

 private:
  Task<void> Handle(ServerConnection& connection) override {
    const std::string method(connection.head().method);
    const std::string target(connection.head().target);
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(method + " " + target);
      const Header* const key = connection.head().headers.Find("authorization");
      authorization_ = key != nullptr ? std::string(key->value) : "";
    }
    auto reading = connection.ReadBody();
    co_await reading;
    const auto page = pages_.find(method + " " + target.substr(0, target.find('?')));
    Answer answer{.status = 404, .body = "{}", .headers = {}};
    if (page != pages_.end()) {
      answer.status = page->second.status;
      answer.body = page->second.body;
    }
    auto responding = connection.Respond(answer);
    co_await responding;
  }
  Answer Refuse(const RequestProblem& problem) override {
    return {.status = problem.status, .body = problem.what, .headers = {}};
  }

  const Pages pages_;
  std::mutex mutex_;
  std::vector<std::string> asked_;  // guarded by mutex_
  std::string authorization_;       // guarded by mutex_
  LoopThread thread_;
  LoopbackServer server_;
};

}  // namespace fathom
