#include "net/resolver.h"

#include <netdb.h>

#include <optional>

namespace fathom {

struct Resolver::Question {
  Resolver& resolver;
  Loop& loop;
  std::string host;
  std::coroutine_handle<> waiting;
  std::optional<Result<std::vector<Address>>> answer;

  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> handle) {
    waiting = handle;
    const std::lock_guard lock(resolver.mutex_);
    resolver.questions_.push_back(this);
    resolver.wake_.notify_one();
  }
  void await_resume() const {}
};

Resolver::Resolver() : thread_([this] { Work(); }) {}

Resolver::~Resolver() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

Task<Result<std::vector<Address>>> Resolver::Resolve(Loop& loop, std::string host, uint16_t port) {
  if (const auto numeric = Address::Numeric(host, port)) {
    co_return std::vector<Address>{*numeric};
  }
  std::vector<Address> found;
  {
    const std::lock_guard lock(mutex_);
    const auto known = answers_.find(host);
    if (known != answers_.end() && loop.now() - known->second.at < kTtl) {
      found = known->second.addresses;
    }
  }
  if (found.empty()) {
    Question question{*this, loop, std::move(host), nullptr, std::nullopt};
    co_await question;
    if (!*question.answer) co_return std::unexpected(std::move(*question.answer).error());
    found = **std::move(question.answer);
  }
  for (Address& address : found) address = address.WithPort(port);
  co_return found;
}

void Resolver::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !questions_.empty(); });
    if (stopping_) return;
    Question& question = *questions_.front();
    questions_.pop_front();
    lock.unlock();
    auto answer = Lookup(question.host);
    lock.lock();
    if (answer) {
      if (answers_.size() >= kMaxNames) answers_.clear();
      answers_[question.host] = {*answer, std::chrono::steady_clock::now()};
    } else if (const auto old = answers_.find(question.host); old != answers_.end()) {
      answer = old->second.addresses;
    }
    question.answer.emplace(std::move(answer));
    question.loop.Post([&question] { question.waiting.resume(); });
  }
}

Result<std::vector<Address>> Resolver::Lookup(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (error != 0) return Fail(Blame::kPeer, "cannot resolve '{}': {}", host, gai_strerror(error));
  std::vector<Address> found;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    found.push_back(Address::Of(entry->ai_addr, entry->ai_addrlen));
  }
  freeaddrinfo(list);
  return found;
}

}  // namespace fathom
