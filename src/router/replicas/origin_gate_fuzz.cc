// Whatever comes, in whatever order: only messages that were sealed with the group's key, of a
// process that has answered a challenge, are believed, each of them once; and the gate answers no
// more than it is asked, and keeps no more than documented.
//
// The input is a list of steps, two bytes each: what happens, and to which of the things there are.
#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "router/replicas/origin_gate.h"

namespace fathom {
namespace {

constexpr Duration kFuzzTimeout = std::chrono::seconds(5);

struct FuzzProcess {
  FuzzProcess(std::string id, uint64_t number, const MessageSeal* seal)
      : incarnation(number),
        gate({.group = "g", .id = std::move(id), .incarnation = number}, seal, number,
             [this](const std::string&, ReplicaMessage::Content content) {
               sent.push_back(*gate.Seal(std::move(content)));
             }) {}

  const uint64_t incarnation;
  std::vector<std::string> sent;
  OriginGate gate;
};

class GateFuzz {
 public:
  void Step(uint8_t what, uint8_t which) {
    FuzzProcess& from = *processes_[which % processes_.size()];
    switch (what % 10) {
      case 0:
        return Keep(*from.gate.Seal(ReplicaPresence{.interval_ms = 1000}));
      case 1:
        return Keep(*from.gate.Seal(ReplicaPresence{.interval_ms = 0}));
      case 2:
        return Keep(*from.gate.Seal(Gauges{}));
      case 3:
        return Keep(*from.gate.Seal(Challenge{.to = "self", .incarnation = 1, .nonce = which}));
      case 4:
        return Keep(*from.gate.Seal(Proof{.to = "self", .nonce = which}));
      case 5:  // the last one is changed
        if (!wire_.empty() && !wire_.back().empty()) {
          char& byte = wire_.back()[which * 7 % wire_.back().size()];
          byte = static_cast<char>(byte ^ (1 << (which % 8)));
        }
        return;
      case 6:  // what others have sent so far, to one of them
        return Answer(from);
      case 7:
        now_ += std::chrono::milliseconds(which * 16);
        return self_.gate.Expire(now_, kFuzzTimeout);
      case 8:
        return Keep(std::string(which, static_cast<char>(what)));
      default:  // any of those that are there, again
        if (!wire_.empty()) Receive(wire_[which % wire_.size()]);
    }
  }

 private:
  void Keep(std::string message) {
    Receive(message);
    wire_.push_back(std::move(message));
  }

  void Answer(FuzzProcess& process) {
    for (const std::string& question : std::exchange(self_.sent, {})) {
      (void)process.gate.Open(question, now_);
    }
    if (!process.sent.empty()) answered_.insert(process.incarnation);
    for (const std::string& answer : std::exchange(process.sent, {})) Keep(answer);
  }

  void Receive(const std::string& bytes) {
    const size_t answers = self_.sent.size();
    const auto opened = self_.gate.Open(bytes, now_);
    CHECK(self_.sent.size() <= answers + 2);
    CHECK(self_.gate.origins().size() <= OriginGate::kMostOrigins);
    if (!opened || !opened->message) return;
    CHECK(seal_.Open(bytes).has_value());
    const ReplicaMessage& message = *opened->message;
    const auto known = self_.gate.origins().find(message.origin);
    CHECK(known != self_.gate.origins().end());
    CHECK(known->second.incarnation == message.incarnation);
    CHECK(answered_.contains(message.incarnation));
    CHECK(believed_.emplace(message.incarnation, message.number).second);
  }

  TimePoint now_{std::chrono::seconds(1000)};
  const MessageSeal seal_{"key"};
  const MessageSeal other_{"another key"};
  FuzzProcess self_{"self", 1, &seal_};
  std::array<std::unique_ptr<FuzzProcess>, 6> processes_ = {
      std::make_unique<FuzzProcess>("a", 2, &seal_),
      std::make_unique<FuzzProcess>("a", 3, &seal_),
      std::make_unique<FuzzProcess>("b", 4, &seal_),
      std::make_unique<FuzzProcess>("self", 5, &seal_),
      std::make_unique<FuzzProcess>("c", 6, &other_),
      std::make_unique<FuzzProcess>("d", 7, nullptr)};
  std::vector<std::string> wire_;
  std::set<uint64_t> answered_;                       // incarnations
  std::set<std::pair<uint64_t, uint64_t>> believed_;  // and numbers
};

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fathom::GateFuzz fuzz;
  for (size_t i = 0; i + 1 < std::min<size_t>(size, 1024); i += 2) fuzz.Step(data[i], data[i + 1]);
  return 0;
}
