// What all sources of Kubernetes have in common: claims, what is wrong, what cannot be seen.
//
// A source follows objects and tells its KubeClaims what they say. Nothing is claimed before the
// first lists are complete: a worker's settings would change with what comes later, and the worker
// would have to join again.
//
// Threads  Made on any thread before the loop runs; everything else on the loop.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/log.h"
#include "io/kube/kube_client.h"
#include "io/kube/kube_trouble.h"
#include "io/net/loop.h"
#include "io/net/task.h"
#include "router/sources/kube_claims.h"
#include "router/sources/muster.h"
#include "router/sources/worker_sources.h"

namespace fathom {

// What a source works with. All of it outlives the source.
struct KubeGround {
  Loop& loop;
  KubeClient& client;
  Muster& muster;
  Log& log;
};

class KubeSource : public WorkerSource {
 public:
  void Start() final;

 protected:
  KubeSource(const KubeGround& ground, KubeEntry entry);

  // Begins to follow.
  virtual void Follow() = 0;
  // Whether the first lists are complete, or will not come.
  virtual bool IsWhole() const = 0;
  // What the claims depend on cannot be read: nobody leaves.
  virtual bool IsBlind() const = 0;
  // Asked when the lists are complete and no worker is claimed: why so, and what to do; empty if
  // another of its words says it already.
  virtual std::string WhyNone() const = 0;
  // Several times a second.
  virtual void Look() {}

  // Something was told to claims().
  void Changed();
  // A complete list.
  void Listed();
  // The source cannot be read: of `what`, one of the kinds that it follows.
  void Fails(const std::string& what, const KubeTrouble& trouble);
  void Works(const std::string& what);
  bool InTrouble(const std::string& what) const { return troubles_.contains(what); }
  // What it cannot see though it works; empty: nothing any more.
  void CannotSee(const std::string& what, std::string why);
  // Whether CannotSee() holds of `what` now.
  bool Lacks(const std::string& what) const { return unknown_.contains(what); }

  KubeClaims& claims() { return claims_; }
  Loop& loop() { return ground_.loop; }
  KubeClient& client() { return ground_.client; }

 private:
  struct Life {};

  Task<void> Tick(std::weak_ptr<Life> life);
  void SayUnknown();

  const KubeGround ground_;
  const std::unique_ptr<Muster::Source> source_;
  KubeClaims claims_;
  std::optional<TimePoint> next_;  // when the claims have to be looked at again
  std::map<std::string, std::string> troubles_;
  std::map<std::string, std::string> unknown_;
  std::string said_unknown_;
  const std::shared_ptr<Life> life_ = std::make_shared<Life>();
};

}  // namespace fathom
