// People who talk to a model: each has a conversation of several turns, thinks between them, and
// sends everything said so far with every turn, as chat clients do.
//
// What it shows: the first turn of a conversation must be computed whole; a follow-up only needs
// what is new, if it reaches a worker that still holds the rest.
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
#include "http/client_connection.h"
#include "load/latency_histogram.h"
#include "net/loop.h"
#include "net/resolver.h"
#include "net/task.h"

namespace fathom {

struct ConversationOptions {
  Endpoint endpoint;
  std::string model = "mock-model";
  size_t people = 10;
  size_t turns = 5;             // of a conversation; then a new one begins
  size_t system_words = 0;      // of a system prompt that all conversations share
  size_t opening_words = 1500;  // of the first message
  size_t reply_words = 60;      // of each later one
  uint64_t max_tokens = 120;
  Duration think = std::chrono::seconds(1);  // on average, between an answer and the next message
  bool sessions = false;                     // names its conversation in X-Session-ID
  Duration timeout = std::chrono::seconds(120);
  uint64_t seed = 1;
};

struct ConversationReport {
  uint64_t completed = 0;  // turns answered whole
  uint64_t errors = 0;
  std::string first_problem;
  uint64_t tokens = 0;          // generated
  uint64_t prompt_tokens = 0;   // sent, as the engines counted them
  uint64_t cached_tokens = 0;   // of those, found in a cache, as the engines said
  LatencyHistogram first_turn;  // time to first token
  LatencyHistogram follow_up;
  LatencyHistogram between_tokens;
};

class Conversations {
 public:
  Conversations(Loop& loop, Resolver& resolver, const ConversationOptions& options);
  ~Conversations();

  // Everybody starts, at moments spread over a think time, and goes on until told to stop.
  void Start();
  // Everybody leaves after the turn they are in.
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
  std::string system_;  // what everybody's conversation begins with; empty: nothing
  std::vector<std::unique_ptr<Person>> people_;
  ConversationReport report_;
  bool stopping_ = false;
  size_t present_ = 0;  // people who have not left
};

// `count` words that depend on `random` alone.
std::string MakeWords(Random& random, size_t count);

}  // namespace fathom
