#include "net/resolver.h"

#include <netdb.h>

#include <condition_variable>
#include <coroutine>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace fathom {

// Where questions wait for the thread, and answers for those who ask again.
struct Resolver::Desk {
  struct Answer {
    std::vector<Address> addresses;
    TimePoint at;
  };

  std::mutex mutex;  // guards all below
  std::condition_variable wake;
  std::deque<Question*> questions;
  std::unordered_map<std::string, Answer> answers;
  bool looking = false;  // the thread waits for an answer from outside
  bool stopping = false;
};

struct Resolver::Question {
  Desk& desk;
  Loop& loop;
  std::string host;
  bool fresh;  // an answer from earlier is none
  std::coroutine_handle<> waiting;
  std::optional<Result<std::vector<Address>>> answer;

  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> handle) {
    waiting = handle;
    const std::lock_guard lock(desk.mutex);
    desk.questions.push_back(this);
    desk.wake.notify_one();
  }
  void await_resume() const {}
};

Resolver::Resolver() : desk_(std::make_shared<Desk>()), thread_([desk = desk_] { Work(desk); }) {}

Resolver::~Resolver() { Stop(); }

void Resolver::Stop() {
  if (!thread_.joinable()) return;
  bool looking = false;
  {
    const std::lock_guard lock(desk_->mutex);
    desk_->stopping = true;
    looking = desk_->looking;
  }
  desk_->wake.notify_one();
  looking ? thread_.detach() : thread_.join();
}

Task<Result<std::vector<Address>>> Resolver::Resolve(Loop& loop, std::string host, uint16_t port) {
  std::vector<Address> known;
  {
    const std::lock_guard lock(desk_->mutex);
    const auto answer = desk_->answers.find(host);
    if (answer != desk_->answers.end() && loop.now() - answer->second.at < kTtl) {
      known = answer->second.addresses;
    }
  }
  for (Address& address : known) address = address.WithPort(port);
  if (!known.empty()) co_return known;
  auto putting = Put(loop, std::move(host), port, false);
  auto found = co_await putting;
  co_return found;
}

Task<Result<std::vector<Address>>> Resolver::Ask(Loop& loop, std::string host, uint16_t port) {
  return Put(loop, std::move(host), port, true);
}

Task<Result<std::vector<Address>>> Resolver::Put(Loop& loop, std::string host, uint16_t port,
                                                 bool fresh) {
  if (const auto numeric = Address::Numeric(host, port)) {
    co_return std::vector<Address>{*numeric};
  }
  Question question{*desk_, loop, std::move(host), fresh, nullptr, std::nullopt};
  co_await question;
  if (!*question.answer) co_return std::unexpected(std::move(*question.answer).error());
  std::vector<Address> found = **std::move(question.answer);
  for (Address& address : found) address = address.WithPort(port);
  co_return found;
}

void Resolver::Work(const std::shared_ptr<Desk>& desk) {
  std::unique_lock lock(desk->mutex);
  for (;;) {
    desk->wake.wait(lock, [&] { return desk->stopping || !desk->questions.empty(); });
    if (desk->stopping) return;
    Question& question = *desk->questions.front();
    desk->questions.pop_front();
    const std::string host = question.host;
    desk->looking = true;
    lock.unlock();
    auto answer = Lookup(host);
    lock.lock();
    desk->looking = false;
    if (desk->stopping) return;  // whoever asked may be gone
    if (answer) {
      if (desk->answers.size() >= kMaxNames) desk->answers.clear();
      desk->answers[host] = {*answer, std::chrono::steady_clock::now()};
    } else if (const auto old = desk->answers.find(host);
               old != desk->answers.end() && !question.fresh) {
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
