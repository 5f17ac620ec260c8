// This router's part in its group: carrier, group and guests, on a loop of their own.
//
// The loop wakes every ReplicaGroup::kTick. Whatever happens on it, requests do not wait for it:
// they read loads, beliefs and bindings where they always do.
//
// Threads  Built, started and stopped on one thread; the loop has its own. board() from any.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "io/kube/kube_client.h"
#include "io/nats/nats_options.h"
#include "io/net/loop.h"
#include "io/net/message_seal.h"
#include "io/net/resolver.h"
#include "io/net/task.h"
#include "router/events/intake.h"
#include "router/fleet/fleet.h"
#include "router/replicas/carrier.h"
#include "router/replicas/index_exchange.h"
#include "router/replicas/load_exchange.h"
#include "router/replicas/poll_exchange.h"
#include "router/replicas/prompt_exchange.h"
#include "router/replicas/replica_group.h"
#include "router/replicas/replica_spec.h"
#include "router/replicas/replica_view.h"
#include "router/replicas/session_exchange.h"
#include "router/routing/response_pins.h"
#include "router/routing/sent_prompts.h"
#include "router/routing/session_affinity.h"

namespace fathom {

struct ReplicasOptions {
  std::string group;
  std::string id;
  std::string key;  // empty: an open group
  Duration timeout = std::chrono::seconds(5);
  ReplicaSpec spec;
  NatsOptions nats;  // with accounts and files; the servers are those of `spec`
  std::string listen;
  KubeWish kube;                    // of the cluster, for k8s+zmq://
  std::string url;                  // where this replica takes requests that are forwarded
  std::vector<std::string> models;  // patterns of the models that it serves; empty: all
};

// The same for all replicas of a group, and for others only by chance. Keys of prompts, responses
// and blocks are made with it, so that replicas can compare them; clients who know it could make
// prompts that collide.
uint64_t ReplicaSecret(const ReplicasOptions& options, std::string_view purpose);

class Replicas {
 public:
  // What is shared. All must outlive it.
  struct World {
    const Fleet& fleet;
    const EngineSpeed& speed;
    SentPrompts& sent;
    SessionAffinity& sessions;
    ResponsePins& pins;
    Intake* intake;  // null: KV events are not followed. It must not have been started yet
    std::function<void()> relief;  // called after the others' load has become less
    // Called a few times per second with those that are heard. Only in a group with a key.
    std::function<void(const ReplicaPeers& peers)> show_peers;
  };

  // Fails if it cannot listen. The resolver and the log must outlive it.
  static Result<std::unique_ptr<Replicas>> Create(ReplicasOptions options, const World& world,
                                                  Resolver& resolver, Log& log);
  ~Replicas() { Stop(); }
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  void Start();
  // From now on the others forward requests here only if no other replica can serve them. From any
  // thread, before Stop().
  void Drain();
  // Says goodbye, so that the others forget this replica at once.
  void Stop();

  const ReplicaBoard& board() const { return board_; }

 private:
  Replicas(ReplicasOptions options, const World& world, Log& log);

  Result<std::unique_ptr<Carrier>> MakeCarrier(Resolver& resolver);
  void InviteAll();
  Task<void> Run();
  ReplicaPresence Describe() const;
  void ShowView(TimePoint now);
  ReplicaView::Row OwnRow(TimePoint now) const;
  void WatchPlainPolls(const PollExchange::Counts& polls);
  void WatchIds();
  void WatchRefusals(TimePoint now);

  const ReplicasOptions options_;
  const World world_;
  Log& log_;
  Loop loop_;
  const std::unique_ptr<const MessageSeal> seal_;  // null: an open group
  std::unique_ptr<KubeClient> kube_;               // null: no Service is asked for
  std::unique_ptr<Carrier> carrier_;
  std::unique_ptr<ReplicaGroup> group_;
  std::unique_ptr<LoadExchange> loads_;
  std::unique_ptr<PromptExchange> prompts_;
  std::unique_ptr<SessionExchange> sessions_;
  std::unique_ptr<IndexExchange> index_;  // null without an intake, as the next
  std::unique_ptr<PollExchange> polls_;
  ReplicaBoard board_;
  bool up_ = false;  // at the last view
  TimePoint since_{};
  uint64_t conflicts_ = 0;     // that were reported
  bool said_plain_ = false;    // that polled events can be read
  bool said_by_time_ = false;  // that the index was not taken over in time
  ReplicaGroupCounts before_;  // at the last view
  std::string_view refused_;   // why, of the last message that was not believed
  TimePoint refused_at_{};
  bool said_refused_ = false;  // since another replica was heard
  std::atomic<bool> draining_ = false;
  bool stopping_ = false;
  std::promise<void> ended_;  // Run()
  std::thread thread_;
};

}  // namespace fathom
