// Replicas of a group that hear each other without a network.
//
// Each message goes through its bytes, so that what does not fit into one is noticed. Delivery is a
// step of its own: until then everything is on its way.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "router/replicas/replica_guest.h"

namespace fathom {

class ReplicaCircle {
 public:
  class Seat final : public ReplicaVoice {
   public:
    Seat(ReplicaCircle& circle, std::string id) : circle_(circle), id_(std::move(id)) {}

    void Tell(ReplicaMessage::Content content) override { circle_.Send(*this, std::move(content)); }
    bool TellOne(const std::string& /*replica*/, ReplicaMessage::Content content) override {
      if (full) return false;
      circle_.Send(*this, std::move(content));
      return true;
    }
    const ReplicaPeers& peers() const override { return peers_; }
    const std::string& id() const override { return id_; }

    void Invite(ReplicaGuest& guest) { guests_.push_back(&guest); }
    bool full = false;  // nothing leaves for a single one
    uint64_t messages = 0;
    uint64_t bytes = 0;

   private:
    friend class ReplicaCircle;
    ReplicaCircle& circle_;
    const std::string id_;
    ReplicaPeers peers_;
    std::vector<ReplicaGuest*> guests_;
    uint64_t number_ = 0;
    bool present_ = false;
  };

  Seat& Add(const std::string& id) {
    seats_.push_back(std::make_unique<Seat>(*this, id));
    return *seats_.back();
  }
  void Join(Seat& seat, TimePoint now) {
    seat.present_ = true;
    for (const auto& other : seats_) {
      if (other.get() == &seat || !other->present_) continue;
      Meet(*other, seat, now);
      Meet(seat, *other, now);
    }
  }
  // Without a word; what is on its way from it still comes, and is not heard.
  void Leave(Seat& seat, TimePoint now) {
    seat.present_ = false;
    for (const auto& other : seats_) {
      Part(*other, seat, now);
      Part(seat, *other, now);
    }
  }

  // `seat` no longer hears `other`, which may go on hearing it.
  static void Deafen(Seat& seat, const Seat& other, TimePoint now) { Part(seat, other, now); }

  // Everything that is on its way. `loses` drops a message for one of its receivers.
  using Loses = std::function<bool()>;
  void Deliver(TimePoint now, const Loses& loses = nullptr) {
    for (std::deque<std::string> sent = std::move(sent_); !sent.empty(); sent.pop_front()) {
      const auto message = DecodeReplicaMessage(sent.front());
      ASSERT_TRUE(message);
      for (const auto& seat : seats_) {
        if (!seat->peers_.contains(message->origin) || (loses && loses())) continue;
        for (ReplicaGuest* guest : seat->guests_) guest->Heard(*message, now);
      }
    }
    sent_.clear();
  }
  void Tick(TimePoint now) {
    for (const auto& seat : seats_) {
      if (!seat->present_) continue;
      for (ReplicaGuest* guest : seat->guests_) guest->Tick(now);
    }
  }
  // So many ticks, each with its delivery.
  void Run(TimePoint& now, int ticks, const Loses& loses = nullptr) {
    for (int i = 0; i < ticks; ++i) {
      now += kTick;
      Tick(now);
      Deliver(now, loses);
    }
  }

  static constexpr Duration kTick = std::chrono::milliseconds(5);

 private:
  static void Meet(Seat& seat, const Seat& other, TimePoint now) {
    seat.peers_[other.id_] = {.heard = now};
    for (ReplicaGuest* guest : seat.guests_) guest->Joined(other.id_, now);
  }
  static void Part(Seat& seat, const Seat& other, TimePoint now) {
    if (seat.peers_.erase(other.id_) == 0) return;
    for (ReplicaGuest* guest : seat.guests_) guest->Left(other.id_, now);
  }
  void Send(Seat& from, ReplicaMessage::Content content) {
    ReplicaMessage message{.group = "g", .origin = from.id_, .incarnation = 1};
    message.number = ++from.number_;
    message.content = std::move(content);
    std::string bytes = Encode(message);
    EXPECT_LE(bytes.size(), ReplicaMessage::kMostBytes);
    ++from.messages;
    from.bytes += bytes.size();
    sent_.push_back(std::move(bytes));
  }

  std::vector<std::unique_ptr<Seat>> seats_;
  std::deque<std::string> sent_;
};

}  // namespace fathom
