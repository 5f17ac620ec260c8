#include "io/http/connection_pool.h"

#include <algorithm>

namespace fathom {

std::unique_ptr<ClientConnection> ConnectionPool::Take(WorkerId worker) {
  const auto found = idle_.find(worker);
  if (found == idle_.end()) return nullptr;
  auto& waiting = found->second;
  while (!waiting.empty()) {
    std::unique_ptr<ClientConnection> connection = std::move(waiting.back());
    waiting.pop_back();
    connection->Wake();
    const bool quiet = connection->quiet();
    if (quiet && loop_.now() - connection->idle_since() < idle_timeout_) return connection;
    if (!quiet && tell_lost_) tell_lost_(worker);
  }
  return nullptr;
}

void ConnectionPool::Put(WorkerId worker, std::unique_ptr<ClientConnection> connection) {
  auto& waiting = idle_[worker];
  if (waiting.size() >= max_idle_) return;
  connection->Rest([this, worker](ClientConnection& lost) { Lose(worker, lost); });
  waiting.push_back(std::move(connection));
}

void ConnectionPool::Lose(WorkerId worker, ClientConnection& connection) {
  auto& waiting = idle_[worker];
  const auto at = std::find_if(waiting.begin(), waiting.end(),
                               [&](const auto& held) { return held.get() == &connection; });
  if (at == waiting.end()) return;
  // The connection calls this from a function object that it owns, so it must outlive the call.
  std::unique_ptr<ClientConnection> doomed = std::move(*at);
  waiting.erase(at);
  loop_.Post([doomed = std::move(doomed)] {});
  if (tell_lost_) tell_lost_(worker);
}

void ConnectionPool::Sweep() {
  const TimePoint oldest = loop_.now() - idle_timeout_;
  for (auto& [worker, waiting] : idle_) {
    std::erase_if(waiting, [&](const auto& held) { return held->idle_since() < oldest; });
  }
  std::erase_if(idle_, [](const auto& entry) { return entry.second.empty(); });
}

size_t ConnectionPool::idle() const {
  size_t total = 0;
  for (const auto& [worker, waiting] : idle_) total += waiting.size();
  return total;
}

}  // namespace fathom
