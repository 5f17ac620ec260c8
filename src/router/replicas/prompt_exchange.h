// Which prompts have the other replicas just sent, and to which ranks?
//
// A burst of requests with the same new prefix must not scatter, whichever replica each of them
// reaches. So a prompt is told when it is sent, when its first byte has come and when it ends
// without one, and believed here for as long as its origin says (router/routing/sent_prompts.h).
//
// Lost      A belief lasts a minute at most. Every kWhole the prompts that are still believed are
//           named, so that the others end sooner.
// Order     What a later message has said of a prompt stays.
// Newcomer  Is told the prompts that are believed now, newest first, at most kMostForNewcomer.
//
// Threads  The replicas' loop.
// Memory   Of others at most SentPrompts::kMostForeign marks, shared evenly by the origins; of our
//          own at most kMostOwn.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "router/replicas/replica_guest.h"
#include "router/routing/sent_prompts.h"

namespace fathom {

class PromptExchange final : public ReplicaGuest {
 public:
  static constexpr Duration kWhole = std::chrono::seconds(2);
  // A newcomer has to prove itself to us, and we to it.
  static constexpr Duration kSettle = std::chrono::milliseconds(300);
  static constexpr size_t kMostBytesTold = 32 << 10;           // in a message, about
  static constexpr size_t kMostForNewcomer = size_t{1} << 20;  // bytes, about
  static constexpr size_t kMostOwn = 1 << 18;                  // marks
  static constexpr size_t kMostNamed = 4096;                   // prompts in a message
  static constexpr size_t kMostMarks = 512;                    // of a prompt

  // Both must outlive it.
  PromptExchange(SentPrompts& prompts, ReplicaVoice& voice);
  ~PromptExchange() override;

  void Heard(const ReplicaMessage& message, TimePoint now) override;
  void Tick(TimePoint now) override;
  void Joined(const std::string& origin, TimePoint now) override;
  void Left(const std::string& origin, TimePoint now) override;

  // Prompts of others that are believed now.
  size_t believed() const { return ends_.size(); }

 private:
  // A prompt of our own, while it is believed.
  struct Own {
    RankLabel rank;
    TimePoint until{};
    std::vector<PromptMark> marks;
  };
  // A prompt of another replica.
  struct Foreign {
    uint64_t number = 0;  // of the message that said it
    RankLabel rank;
    TimePoint until{};
    std::vector<PromptMark> marks;
  };
  struct Origin {
    std::map<uint64_t, Foreign> prompts;  // by id
    size_t marks = 0;
  };
  using Origins = std::map<std::string, Origin, std::less<>>;
  // When a belief ends, and whose it is.
  struct End {
    TimePoint until{};
    Origin* origin = nullptr;
    uint64_t id = 0;
    friend auto operator<=>(const End&, const End&) = default;
  };

  void TakeNews(TimePoint now);
  void Keep(const SentPrompts::News& news);
  void ForgetOwn(TimePoint now);
  void TellWhole(TimePoint now);
  void TellNewcomer(TimePoint now);
  void Add(SentPrompt prompt);
  void Flush();

  void Hear(Origin& origin, uint64_t number, const SentPrompt& told, TimePoint now);
  void EndUnnamed(Origin& origin, uint64_t number, const SentPromptsTold& told);
  void Drop(Origin& origin, std::map<uint64_t, Foreign>::iterator at);
  void Forget(const std::string& origin);
  bool HasRoom(const Origin& origin, size_t marks) const;

  SentPrompts& prompts_;
  ReplicaVoice& voice_;

  std::vector<SentPrompts::News> news_;
  std::map<uint64_t, Own> own_;  // by id: the newest are last
  size_t own_marks_ = 0;
  SentPromptsTold batch_;
  size_t batch_bytes_ = 0;
  TimePoint whole_due_{};
  bool owes_whole_ = false;  // something was told that none has ended yet
  TimePoint newcomer_due_ = kNever;

  Origins origins_;
  std::set<End> ends_;
};

}  // namespace fathom
