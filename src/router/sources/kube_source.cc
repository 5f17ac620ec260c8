#include "router/sources/kube_source.h"

#include <fmt/format.h>

#include <utility>

namespace fathom {

KubeSource::KubeSource(const KubeGround& ground, KubeEntry entry)
    : ground_(ground),
      source_(ground.muster.Open(entry.source(), Muster::Rank::kFound)),
      claims_(*source_, std::move(entry)) {}

void KubeSource::Start() {
  Follow();
  Spawn(Tick(life_));
}

Task<void> KubeSource::Tick(std::weak_ptr<Life> life) {
  constexpr Duration kInterval = std::chrono::milliseconds(250);
  Loop& loop = ground_.loop;
  for (;;) {
    co_await loop.Sleep(kInterval);
    if (life.expired()) co_return;
    Look();
    if (next_ && *next_ <= loop.now()) Changed();
  }
}

void KubeSource::Changed() {
  if (!IsWhole()) return;
  next_ = claims_.Apply(ground_.loop.now(), IsBlind());
  CannotSee("claims", claims_.problem());
  const std::string why = claims_.empty() ? WhyNone() : std::string();
  CannotSee("workers", why.empty() ? why : "it names no worker: " + why);
}

void KubeSource::Listed() {
  Changed();
  if (IsWhole() && troubles_.empty()) source_->Ok();
}

void KubeSource::Fails(const std::string& what, const KubeTrouble& trouble) {
  troubles_[what] = trouble.what;
  source_->Stale(trouble.what);
  Changed();
}

void KubeSource::Works(const std::string& what) {
  if (troubles_.erase(what) == 0) return;
  Changed();
  if (!troubles_.empty()) {
    source_->Stale(troubles_.begin()->second);
  } else if (IsWhole()) {
    source_->Ok();
  }
}

void KubeSource::CannotSee(const std::string& what, std::string why) {
  const auto known = unknown_.find(what);
  if (why.empty()) {
    if (known == unknown_.end()) return;
    unknown_.erase(known);
  } else {
    if (known != unknown_.end() && known->second == why) return;
    unknown_[what] = std::move(why);
  }
  SayUnknown();
}

void KubeSource::SayUnknown() {
  std::string all;
  for (const auto& [_, why] : unknown_) all += (all.empty() ? "" : "; ") + why;
  source_->SetUnknown(all);
  if (all.empty() || all == said_unknown_) return;
  said_unknown_ = all;
  ground_.log.Warn("A source of workers does not see everything",
                   {{"source", source_->name()}, {"reason", all}});
}

}  // namespace fathom
