// Simulates people who chat with a model: each has a conversation of several turns, pauses to think
// between them, and sends the whole history with every turn, as chat clients do.
//
// What it shows: the first turn of a conversation needs a full prefill. A follow-up needs a prefill
// of its new tokens only, if it reaches a worker that still caches the history.
//
// Threads  One loop; everything but the constructor belongs to it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "io/http/client_connection.h"
#include "io/net/loop.h"
#include "io/net/resolver.h"
#include "io/net/task.h"
#include "metrics/latency_histogram.h"

namespace fathom {

struct ConversationOptions {
  Endpoint endpoint;
  std::string model = "mock-model";
  size_t people = 10;
  size_t turns = 5;             // per conversation; then a new one begins
  size_t system_words = 0;      // in the system prompt that all conversations share
  size_t opening_words = 1500;  // in the first message
  size_t reply_words = 60;      // in each later one
  uint64_t max_tokens = 120;
  Duration think = std::chrono::seconds(1);  // mean pause between answer and next message
  bool sessions = false;                     // send X-Session-ID
  Duration timeout = std::chrono::seconds(120);
  uint64_t seed = 1;
};

struct ConversationReport {
  uint64_t completed = 0;  // turns with a complete answer
  uint64_t errors = 0;
  std::string first_problem;
  uint64_t tokens = 0;          // generated
  uint64_t prompt_tokens = 0;   // sent, as the engines counted them
  uint64_t cached_tokens = 0;   // of those, cache hits reported by the engines
  LatencyHistogram first_turn;  // time to first token
  LatencyHistogram follow_up;
  LatencyHistogram between_tokens;
};

class Conversations {
 public:
  Conversations(Loop& loop, Resolver& resolver, const ConversationOptions& options);
  ~Conversations();

  // All people start, at moments spread over one think time, and continue until Stop().
  void Start();
  // Each person leaves after the current turn.
  void Stop() { stopping_ = true; }
  size_t present() const { return present_; }

  const ConversationReport& report() const { return report_; }

 private:
  struct Message {
    std::string_view role;
    std::string text;
  };
  struct Person;
  struct Reply;

  Task<void> Live(Person& person);
  Task<bool> TakeTurn(Person& person, bool first);
  Task<Result<void>> Ask(Person& person, Reply& reply);
  Task<Result<void>> Receive(Person& person, Reply& reply);
  std::string BuildRequest(const Person& person) const;
  void TakeEvents(Reply& reply);
  Duration Exponential(Random& random, Duration mean) const;

  Loop& loop_;
  Resolver& resolver_;
  const ConversationOptions options_;
  std::string system_;  // shared system prompt; empty: none
  std::vector<std::unique_ptr<Person>> people_;
  ConversationReport report_;
  bool stopping_ = false;
  size_t present_ = 0;  // people who are still active
};

// `count` words, determined by `random` alone.
std::string MakeWords(Random& random, size_t count);

}  // namespace fathom
