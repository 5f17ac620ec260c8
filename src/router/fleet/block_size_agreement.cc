#include "router/fleet/block_size_agreement.h"

#include <algorithm>
#include <tuple>

namespace fathom {

std::string_view Name(SizeSource source) {
  switch (source) {
    case SizeSource::kNone:
      return "";
    case SizeSource::kConfigured:
      return "configured";
    case SizeSource::kReport:
      return "report";
    case SizeSource::kEvents:
      return "events";
  }
  std::unreachable();
}

// --- input

BlockSizeAgreement::Peer* BlockSizeAgreement::Find(WorkerId id) {
  const auto found = peers_.find(id);
  return found == peers_.end() ? nullptr : &found->second;
}

const BlockSizeAgreement::Peer* BlockSizeAgreement::Find(WorkerId id) const {
  const auto found = peers_.find(id);
  return found == peers_.end() ? nullptr : &found->second;
}

void BlockSizeAgreement::Join(WorkerId id, std::string url, TimePoint now) {
  const auto [at, added] = peers_.try_emplace(id);
  if (!added) return;
  Peer& peer = at->second;
  peer.id = id;
  peer.url = std::move(url);
  ++absent_;
  peer.ranks[0].trust.since = now;
  outcome_.admissions.emplace_back(id, Membership::kHeld);
}

void BlockSizeAgreement::Leave(WorkerId id, TimePoint now) {
  Peer* const peer = Find(id);
  if (peer == nullptr) return;
  const std::vector<std::string> models = peer->models;
  Detach(*peer);
  SetPresence(*peer, Presence::kHere);
  peers_.erase(id);
  TouchModels(models, nullptr, now);
}

void BlockSizeAgreement::Detach(Peer& peer) {
  for (const std::string& name : peer.models) {
    const auto model = models_.find(name);
    if (model == models_.end()) continue;
    std::erase(model->second.peers, &peer);
    model->second.ballots.Remove(peer.ballot);
    if (model->second.peers.empty()) models_.erase(model);
  }
  peer.models.clear();
}

void BlockSizeAgreement::Serves(WorkerId id, std::vector<std::string> models, TimePoint now) {
  Peer* const peer = Find(id);
  if (models.size() > kMostModels) models.resize(kMostModels);
  if (peer == nullptr || peer->models == models) return;
  const std::vector<std::string> before = peer->models;
  Detach(*peer);
  peer->models = std::move(models);
  for (const std::string& name : peer->models) {
    models_[name].peers.push_back(peer);
    models_[name].ballots.Add(peer->ballot);
  }
  TouchModels(before, nullptr, now);
  Touch(*peer, now);
}

void BlockSizeAgreement::Answered(WorkerId id, TimePoint now) {
  Peer* const peer = Find(id);
  if (peer == nullptr || peer->presence == Presence::kHere) return;
  if (peer->presence == Presence::kAway) Expect(*peer, now);
  if (!peer->answered) peer->answered = now;
  // With an explicit setting no report is needed.
  if (fixed()) SetPresence(*peer, Presence::kHere);
  Touch(*peer, now);
}

// The worker joins or comes back: sizes proven earlier may belong to another process.
void BlockSizeAgreement::Expect(Peer& peer, TimePoint now) {
  SetPresence(peer, Presence::kAwaited);
  peer.silence_said = false;
  for (auto& [number, rank] : peer.ranks) Forget(peer, rank);
  SetTrust(peer, now);
}

void BlockSizeAgreement::Doubt(WorkerId id, TimePoint now) {
  Peer* const peer = Find(id);
  if (peer == nullptr || starting_ || !agrees()) return;
  const bool here = peer->presence == Presence::kHere;
  if (peer->doubted || (here && now < peer->calm_until)) {
    if (!std::exchange(peer->doubt_waits, true)) waiting_doubts_.push_back(id);
    return;
  }
  if (!here) return;
  SetPresence(*peer, Presence::kAwaited);
  peer->answered = now;
  peer->doubted = true;
  outcome_.interviews.push_back(id);
  if (peer->admission == Membership::kAdmitted) Admit(*peer, Membership::kHeld);
  Touch(*peer, now);
}

void BlockSizeAgreement::RepeatDoubts(TimePoint now) {
  for (const WorkerId id : std::exchange(waiting_doubts_, {})) {
    if (Peer* const peer = Find(id); peer != nullptr) {
      peer->doubt_waits = false;
      Doubt(id, now);
    }
  }
}

void BlockSizeAgreement::Reported(WorkerId id, EngineKind engine, uint32_t size, TimePoint now,
                                  Learned learned) {
  Peer* const peer = Find(id);
  if (peer == nullptr || (peer->doubted && learned == Learned::kInPassing)) return;
  if (std::exchange(peer->doubted, false)) {
    peer->calm_until = now + kCalm;
    if (size != peer->report) Expect(*peer, now);
  }
  if (engine != EngineKind::kUnknown) peer->engine = engine;
  const bool here = peer->presence == Presence::kHere;
  const bool same = size == peer->report || (size == 0 && here);
  if (here && same && std::exchange(peer->report_counts, true)) return;
  if (here && same) return Touch(*peer, now);
  peer->report_counts = true;
  // A process never changes its block size. A different report means a new process, unless that
  // process's events have already proven the new size.
  const bool another = here && peer->report != 0 && ProvenBy(*peer) != size;
  if (peer->presence == Presence::kAway || another) Expect(*peer, now);
  // A worker whose report changed has to be judged again.
  if (size != peer->report && ProvenBy(*peer) == 0) {
    peer->settled = false;
    peer->remembered = 0;
  }
  if (size != peer->stale) peer->stale = 0;
  SetPresence(*peer, Presence::kHere);
  peer->report = size;
  if (size != 0) ShortenStart(now);
  if (fixed() && size != 0 && size != rules_.configured && peer->differing != size) {
    peer->differing = size;
    differing_.push_back({id, size, now});
  }
  SayDiffering(now);
  NoticeSilence(*peer);
  for (const auto& [number, rank] : peer->ranks) NoticeStaleReport(*peer, number, rank.size);
  Touch(*peer, now);
}

void BlockSizeAgreement::SayDiffering(TimePoint now) {
  if (differing_.empty()) return;
  const bool all_known = std::ranges::all_of(peers_, [](const auto& entry) {
    return entry.second.report_counts || entry.second.presence == Presence::kAway;
  });
  std::erase_if(differing_, [&](const Differing& report) {
    if (!all_known && now - report.since < kCalm) return false;
    const Peer* const peer = Find(report.id);
    if (peer == nullptr || peer->differing != report.size) return true;
    SizeRemark remark = About(SizeRemark::Kind::kReportDiffers, *peer);
    remark.size = report.size;
    remark.other = rules_.configured;
    remark.others = OthersOf(peer->id, report.size);
    outcome_.remarks.push_back(std::move(remark));
    return true;
  });
}

void BlockSizeAgreement::NoticeSilence(Peer& peer) {
  if (fixed() || peer.report != 0 || ProvenBy(peer) != 0) return;
  if (std::exchange(peer.silence_said, true)) return;
  outcome_.remarks.push_back(About(SizeRemark::Kind::kSilent, peer));
}

void BlockSizeAgreement::Failed(WorkerId id, TimePoint now) {
  Peer* const peer = Find(id);
  if (peer == nullptr || peer->presence == Presence::kAway) return;
  SetPresence(*peer, Presence::kAway);
  peer->doubted = false;
  peer->away_since = now;
  peer->answered.reset();
  peer->differing = 0;
  Admit(*peer, Membership::kHeld);
  Touch(*peer, now);
}

void BlockSizeAgreement::Followed(WorkerId id, uint32_t rank, TimePoint now) {
  Peer* const peer = Find(id);
  if (peer == nullptr || rank >= kMostRanks || peer->ranks.contains(rank)) return;
  peer->ranks[rank].trust.since = now;
  SetTrust(*peer, now);
}

// The rank's remark counts are kept: streams may change their numbers repeatedly.
void BlockSizeAgreement::Renumbered(WorkerId id, uint32_t from, uint32_t to, TimePoint now) {
  Peer* const peer = Find(id);
  if (peer == nullptr) return;
  if (const auto left = peer->ranks.find(from); left != peer->ranks.end()) {
    Forget(*peer, left->second);
  }
  Followed(id, to, now);
  Touch(*peer, now);
}

void BlockSizeAgreement::Forget(Peer& peer, RankState& rank) {
  if (rank.size != 0) peer.remembered = rank.size;
  rank.size = rank.at_least = 0;
}

bool BlockSizeAgreement::Proven(WorkerId id, uint32_t rank, uint32_t size, TimePoint now) {
  Peer* const peer = Find(id);
  if (peer == nullptr) return false;
  if (rank >= kMostRanks) return MayIndex(id, size);
  RankState& state = peer->ranks[rank];
  if (state.size != size) {
    state.size = size;
    state.at_least = 0;
    ShortenStart(now);
    if (size == peer->report) peer->stale = 0;
    NoticeStaleReport(*peer, rank, size);
    Touch(*peer, now);
  }
  return MayIndex(id, size);
}

void BlockSizeAgreement::Exceeded(WorkerId id, uint32_t rank, uint32_t at_least, TimePoint now) {
  Peer* const peer = Find(id);
  if (peer == nullptr || rank >= kMostRanks || !fixed() || at_least <= rules_.configured) return;
  RankState& state = peer->ranks[rank];
  if (state.size != 0 || state.at_least >= at_least) return;
  state.at_least = at_least;
  SetTrust(*peer, now);
}

void BlockSizeAgreement::NoticeStaleReport(Peer& peer, uint32_t rank, uint32_t size) {
  if (size == 0 || peer.report == 0 || size == peer.report || peer.stale == peer.report) return;
  const bool confirmed = std::ranges::any_of(
      peer.ranks, [&](const auto& other) { return other.second.size == peer.report; });
  if (!peer.report_counts || confirmed) return;
  peer.stale = peer.report;
  SizeRemark remark = About(SizeRemark::Kind::kStaleReport, peer);
  remark.rank = rank;
  remark.size = size;
  remark.other = peer.report;
  outcome_.remarks.push_back(std::move(remark));
}

void BlockSizeAgreement::Reset(WorkerId id, uint32_t rank, TimePoint now) {
  Peer* const peer = Find(id);
  if (peer == nullptr || !peer->ranks.contains(rank)) return;
  Forget(*peer, peer->ranks[rank]);
  // The new process has to be judged again, and not by its predecessor's report.
  peer->settled = peer->report_counts = false;
  Touch(*peer, now);
}

void BlockSizeAgreement::SetPresence(Peer& peer, Presence presence) {
  const bool was_here = std::exchange(peer.presence, presence) == Presence::kHere;
  const bool is_here = presence == Presence::kHere;
  if (was_here && !is_here) ++absent_;
  if (!was_here && is_here) --absent_;
}

void BlockSizeAgreement::Tick(TimePoint now, bool more) {
  RepeatDoubts(now);
  SayDiffering(now);
  if (absent_ == 0 && !starting_) return;
  for (auto& [id, peer] : peers_) {
    const bool waited =
        peer.presence == Presence::kAwaited && peer.answered && now - *peer.answered >= rules_.wait;
    const bool long_away =
        peer.presence == Presence::kAway && peer.settled && now - peer.away_since >= kLongAway;
    if (!waited && !long_away) continue;
    if (waited) {  // routed by load until it reports or proves a size
      SetPresence(peer, Presence::kHere);
      peer.doubted = false;
      NoticeSilence(peer);
    }
    if (long_away) peer.settled = false;
    Touch(peer, now);
  }
  if (!starting_) return;
  const bool waiting = more || std::ranges::any_of(peers_, [](const auto& entry) {
                         return entry.second.presence == Presence::kAwaited;
                       });
  if (!waiting || fixed() || now >= start_ends_) EndStart(now);
}

// --- decisions

uint32_t BlockSizeAgreement::ProvenBy(const Peer& peer) {
  const auto proven =
      std::ranges::find_if(peer.ranks, [](const auto& rank) { return rank.second.size != 0; });
  return proven == peer.ranks.end() ? 0 : proven->second.size;
}

uint32_t BlockSizeAgreement::ClaimOf(const Model& model, const Peer& peer) {
  if (const uint32_t proven = ProvenBy(peer); proven != 0) return proven;
  return model.ballots.Believes(BallotOf(peer)) ? peer.report : 0;
}

Ballot BlockSizeAgreement::BallotOf(const Peer& peer) {
  return {.engine = peer.engine,
          .report = peer.report,
          .proven = ProvenBy(peer),
          .remembered = peer.remembered,
          .contradicted = peer.report != 0 && peer.stale == peer.report,
          .votes = peer.presence == Presence::kHere || peer.settled,
          .settled = peer.settled};
}

void BlockSizeAgreement::Vote(Peer& peer) {
  const Ballot ballot = BallotOf(peer);
  if (ballot == peer.ballot) return;
  for (const std::string& name : peer.models) {
    BallotBox& ballots = models_.at(name).ballots;
    ballots.Remove(peer.ballot);
    ballots.Add(ballot);
  }
  peer.ballot = ballot;
}

// A change of one worker may change the result for all workers of the same models.
void BlockSizeAgreement::Touch(Peer& peer, TimePoint now) {
  Vote(peer);
  if (refused_to_start_) return;
  if (peer.models.empty()) Judge(peer, now);
  TouchModels(std::vector<std::string>(peer.models), &peer, now);
}

// Each worker is judged by its own state, by the sizes of its models and by whose reports are
// believed there. While these stay, only the worker that has changed is judged again.
void BlockSizeAgreement::TouchModels(const std::vector<std::string>& names, Peer* touched,
                                     TimePoint now) {
  if (refused_to_start_) return;
  for (const std::string& name : names) {
    const auto model = models_.find(name);
    if (model == models_.end()) continue;
    if (!starting_) Agree(name, model->second, now);
  }
  for (const std::string& name : names) {
    const auto found = models_.find(name);
    if (found == models_.end()) continue;
    Model& model = found->second;
    std::pair judged_by(model.size, model.ballots.AllDoubts());
    if (model.judged_by != judged_by) {
      model.judged_by = std::move(judged_by);
      for (Peer* peer : model.peers) Judge(*peer, now);
    } else if (touched != nullptr) {
      Judge(*touched, now);
    }
  }
}

void BlockSizeAgreement::EndStart(TimePoint now) {
  starting_ = false;
  if (agrees() && FindConflicts()) {
    refused_to_start_ = true;
    return;
  }
  for (auto& [name, model] : models_) {
    Agree(name, model, now);
    model.judged_by = {model.size, model.ballots.AllDoubts()};
  }
  for (auto& [id, peer] : peers_) Judge(peer, now);
}

bool BlockSizeAgreement::FindConflicts() {
  bool any = false;
  for (const auto& [name, model] : models_) {
    SizeRemark remark{.kind = SizeRemark::Kind::kConflictAtStart, .model = name};
    bool differ = false;
    for (const Peer* peer : model.peers) {
      if (peer->presence != Presence::kHere) continue;
      const uint32_t claim = ClaimOf(model, *peer);
      if (claim == 0) continue;
      const bool proven = ProvenBy(*peer) != 0;
      remark.claims.push_back({.url = peer->url,
                               .engine = peer->engine,
                               .size = claim,
                               .source = proven ? SizeSource::kEvents : SizeSource::kReport});
      differ = differ || claim != remark.claims.front().size;
    }
    any = any || differ;
    if (differ) Announce(std::move(remark), model);
  }
  return any;
}

void BlockSizeAgreement::Agree(const std::string& name, Model& model, TimePoint now) {
  if (fixed()) return;
  if (rules_.mixed) return NameCohorts(name, model);
  const std::vector<SizeVotes> votes = model.ballots.Count();
  const auto best = std::ranges::max_element(votes, {}, [&](const SizeVotes& v) {
    return std::tuple(v.settled_proven, v.settled_claims, v.size == model.size, v.other_proven,
                      v.other_claims, ~v.size);
  });
  if (best == votes.end() || best->size == model.size) return;
  model.size = best->size;
  if (!model.lines.Next(now, kRepeats)) return;
  Announce({.kind = SizeRemark::Kind::kAgreed,
            .size = best->size,
            .source = best->proven() > 0 ? SizeSource::kEvents : SizeSource::kReport,
            .workers = best->all(),
            .model = name},
           model);
}

// Models with the same workers are names of one model and share one remark.
void BlockSizeAgreement::Announce(SizeRemark remark, const Model& model) {
  for (SizeRemark& said : outcome_.remarks) {
    if (said.kind != remark.kind || said.size != remark.size) continue;
    const auto other = models_.find(said.model.substr(0, said.model.find(", ")));
    if (other == models_.end() || other->second.peers != model.peers) continue;
    said.model += ", " + remark.model;
    return;
  }
  outcome_.remarks.push_back(std::move(remark));
}

void BlockSizeAgreement::NameCohorts(const std::string& name, Model& model) {
  for (const SizeVotes& votes : model.ballots.Count()) {
    if (std::ranges::find(model.cohorts, votes.size) != model.cohorts.end()) continue;
    if (model.cohorts.size() >= kMostCounts) return;
    model.cohorts.push_back(votes.size);
    Announce({.kind = SizeRemark::Kind::kCohort,
              .size = votes.size,
              .source = votes.proven() > 0 ? SizeSource::kEvents : SizeSource::kReport,
              .workers = votes.all(),
              .model = name},
             model);
  }
}

uint32_t BlockSizeAgreement::ConflictOf(const Peer& peer) const {
  if (!agrees()) return 0;
  const bool proven = ProvenBy(peer) != 0;
  if (!proven && peer.settled) return 0;  // its first event will prove or refute the report
  for (const std::string& name : peer.models) {
    const Model& model = models_.at(name);
    const uint32_t claim = ClaimOf(model, peer);
    if (claim != 0 && model.size != 0 && claim != model.size) return model.size;
  }
  return 0;
}

// Counted each time; said once, although a worker that fails health checks now and then is refused
// again and again for the same reason.
void BlockSizeAgreement::NoticeRefusal(Peer& peer, uint32_t agreed) {
  const Known size = SizeOf(peer.id);
  CountMismatch(peer.id, size.size);
  const std::pair refusal(size.size, agreed);
  if (std::exchange(peer.refusal_said, refusal) == refusal) return;
  SizeRemark remark = About(SizeRemark::Kind::kRefused, peer);
  remark.size = size.size;
  remark.source = size.source;
  remark.other = agreed;
  outcome_.remarks.push_back(std::move(remark));
}

void BlockSizeAgreement::Judge(Peer& peer, TimePoint now) {
  if (!starting_ && peer.presence == Presence::kHere) {
    const uint32_t conflict = ConflictOf(peer);
    if (conflict != 0 && peer.admission != Membership::kRefused) NoticeRefusal(peer, conflict);
    if (conflict == 0) peer.refusal_said = {};
    if (conflict == 0 && peer.admission == Membership::kRefused) {
      outcome_.remarks.push_back(About(SizeRemark::Kind::kReadmitted, peer));
    }
    const bool known = ProvenBy(peer) != 0 || (peer.report != 0 && peer.report_counts);
    peer.settled = conflict == 0 && (peer.settled || known);
    Vote(peer);
    Admit(peer, conflict != 0 ? Membership::kRefused : Membership::kAdmitted);
  }
  SetTrust(peer, now);
}

void BlockSizeAgreement::Admit(Peer& peer, Membership admission) {
  if (std::exchange(peer.admission, admission) == admission) return;
  outcome_.admissions.emplace_back(peer.id, admission);
}

void BlockSizeAgreement::SetTrust(Peer& peer, TimePoint now) {
  for (auto& [number, rank] : peer.ranks) {
    const Trust next = TrustNow(peer, rank);
    if (next.state == rank.trust.state && next.cause == rank.trust.cause) continue;
    rank.trust = next;
    rank.trust.since = now;
    outcome_.trust.emplace_back(peer.id, number);
    if (next.state >= TrustState::kDoubted) rank.trusted_size = 0;
    if (next.state == TrustState::kDoubted) SayDoubted(peer, number, rank, now);
    if (next.state != TrustState::kTrusted) continue;
    if (std::exchange(rank.trusted_size, rank.size) == rank.size) continue;
    if (!rank.lines.Next(now, kRepeats)) continue;
    SizeRemark remark = About(SizeRemark::Kind::kTrusted, peer);
    remark.rank = number;
    remark.size = rank.size;
    outcome_.remarks.push_back(std::move(remark));
  }
}

// Once per connection, but rate-limited for a rank that reconnects repeatedly.
void BlockSizeAgreement::SayDoubted(Peer& peer, uint32_t number, RankState& rank, TimePoint now) {
  if (!rank.lines.Next(now, kRepeats)) return;
  SizeRemark remark =
      About(fixed() ? SizeRemark::Kind::kMismatch : SizeRemark::Kind::kOddRank, peer);
  // If events only show that blocks are larger, the report may have the exact size.
  const bool reported = rank.size == 0 && peer.report >= rank.at_least;
  remark.rank = number;
  remark.size = rank.size != 0 ? rank.size : reported ? peer.report : rank.at_least;
  remark.at_least = rank.size == 0 && !reported;
  remark.other = ExpectedOf(peer.id);
  remark.others = OthersOf(peer.id, remark.size);
  outcome_.remarks.push_back(std::move(remark));
}

Trust BlockSizeAgreement::TrustNow(const Peer& peer, const RankState& rank) const {
  if (peer.presence == Presence::kAway) return {TrustState::kExcluded, TrustCause::kUnhealthy};
  if (starting_ || peer.presence == Presence::kAwaited) return {TrustState::kProbing};
  if (peer.admission == Membership::kRefused) {
    return {TrustState::kExcluded, TrustCause::kBlockSizeConflict};
  }
  if (rank.at_least != 0) return {TrustState::kDoubted, TrustCause::kBlockSizeMismatch};
  if (rank.size == 0) return {TrustState::kLearning};
  if (MayIndex(peer.id, rank.size)) return {TrustState::kTrusted};
  return {TrustState::kDoubted, TrustCause::kBlockSizeMismatch};
}

SizeRemark BlockSizeAgreement::About(SizeRemark::Kind kind, const Peer& peer) const {
  return {.kind = kind,
          .worker = peer.id,
          .url = peer.url,
          .engine = peer.engine,
          .model = peer.models.empty() ? "" : peer.models.front(),
          .setting = rules_.setting};
}

// --- queries

bool BlockSizeAgreement::MayIndex(WorkerId id, uint32_t size) const {
  if (fixed()) return size == rules_.configured;
  const Peer* const peer = Find(id);
  if (peer == nullptr) return false;
  if (rules_.mixed) return true;
  if (peer->admission == Membership::kRefused || refused_to_start_) return false;
  return std::ranges::all_of(peer->models, [&](const std::string& name) {
    const uint32_t agreed = models_.at(name).size;
    return agreed == 0 || agreed == size;
  });
}

void BlockSizeAgreement::CountMismatch(WorkerId id, uint32_t size) {
  Peer* const peer = Find(id);
  if (peer == nullptr) return;
  const std::pair key(ExpectedOf(id), size);
  if (peer->mismatches.size() >= kMostCounts && !peer->mismatches.contains(key)) return;
  ++peer->mismatches[key];
}

std::vector<std::string> BlockSizeAgreement::awaited() const {
  std::vector<std::string> urls;
  for (const auto& [id, peer] : peers_) {
    if (peer.presence == Presence::kAwaited) urls.push_back(peer.url);
  }
  return urls;
}

Membership BlockSizeAgreement::MembershipOf(WorkerId id) const {
  const Peer* const peer = Find(id);
  return peer == nullptr ? Membership::kHeld : peer->admission;
}

BlockSizeAgreement::Known BlockSizeAgreement::SizeOf(WorkerId id, uint32_t rank) const {
  const Peer* const peer = Find(id);
  if (peer == nullptr) return {};
  const auto found = peer->ranks.find(rank);
  if (found != peer->ranks.end() && found->second.size != 0) {
    return {found->second.size, SizeSource::kEvents};
  }
  return SizeOf(id);
}

BlockSizeAgreement::Known BlockSizeAgreement::SizeOf(WorkerId id) const {
  const Peer* const peer = Find(id);
  if (peer == nullptr) return {};
  if (const uint32_t proven = ProvenBy(*peer); proven != 0) return {proven, SizeSource::kEvents};
  if (peer->report != 0) return {peer->report, SizeSource::kReport};
  if (fixed()) return {rules_.configured, SizeSource::kConfigured};
  return {};
}

uint32_t BlockSizeAgreement::ExpectedOf(WorkerId id) const {
  if (fixed()) return rules_.configured;
  const Peer* const peer = Find(id);
  if (peer == nullptr || rules_.mixed) return 0;
  for (const std::string& name : peer->models) {
    if (const uint32_t agreed = models_.at(name).size; agreed != 0) return agreed;
  }
  return 0;
}

SizeRemark::Others BlockSizeAgreement::OthersOf(WorkerId id, uint32_t size) const {
  using enum SizeRemark::Others;
  const Peer* const peer = Find(id);
  SizeRemark::Others others = kAgree;
  for (const auto& [other_id, other] : peers_) {
    if (other_id == id || other.presence == Presence::kAway) continue;
    const uint32_t proven = ProvenBy(other);
    const uint32_t known = proven != 0 ? proven : other.report;
    if (known == 0 || known == size) continue;
    const bool one_model =
        peer == nullptr || peer->models.empty() || other.models.empty() ||
        std::ranges::find_first_of(peer->models, other.models) != peer->models.end();
    if (one_model) return kDiffer;
    others = kDifferByModel;
  }
  return others;
}

Trust BlockSizeAgreement::TrustOf(WorkerId id, uint32_t rank) const {
  const Peer* const peer = Find(id);
  if (peer == nullptr) return {};
  const auto found = peer->ranks.find(rank);
  if (found != peer->ranks.end()) return found->second.trust;
  Trust trust = TrustNow(*peer, {});
  if (!peer->ranks.empty()) trust.since = peer->ranks.begin()->second.trust.since;
  return trust;
}

const BlockSizeAgreement::Counts& BlockSizeAgreement::MismatchesOf(WorkerId id) const {
  static const Counts kNone;
  const Peer* const peer = Find(id);
  return peer == nullptr ? kNone : peer->mismatches;
}

}  // namespace fathom
