#include "router/replicas/index_exchange.h"

#include <algorithm>
#include <utility>

#include "router/index/holding_snapshot.h"

namespace fathom {
namespace {

constexpr std::string_view kAboutRank = "rank";
constexpr std::string_view kAboutRanks = "ranks";
constexpr size_t kLabelBytes = 12;
constexpr size_t kMostServices = 16;
constexpr size_t kMostServicesOfOne = 4;
constexpr size_t kMostSending = 256;  // pieces that wait for their turn

std::string EncodeLabels(const std::vector<RankLabel>& ranks) {
  std::string bytes;
  for (const RankLabel& rank : ranks) {
    for (int i = 0; i < 64; i += 8) bytes.push_back(static_cast<char>(rank.worker >> i));
    for (int i = 0; i < 32; i += 8) bytes.push_back(static_cast<char>(rank.dp_rank >> i));
  }
  return bytes;
}

size_t PiecesIn(const std::string& bytes) {
  return (bytes.size() + IndexExchange::kPiece - 1) / IndexExchange::kPiece;
}

uint64_t LittleEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    value |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  }
  return value;
}

}  // namespace

IndexExchange::IndexExchange(ReplicaVoice& voice, SnapshotTeller& teller,
                             const SnapshotCounts& taken, Post post, IndexExchangeOptions options)
    : voice_(voice),
      teller_(teller),
      taken_(taken),
      post_(std::move(post)),
      options_(options),
      random_(options.seed),
      last_question_(random_.Next()) {}

void IndexExchange::Later(std::move_only_function<void()> work) {
  post_([alive = std::weak_ptr(alive_), work = std::move(work)]() mutable {
    if (!alive.expired()) work();
  });
}

void IndexExchange::Heard(const ReplicaMessage& message, TimePoint now) {
  if (const auto* ask = std::get_if<struct Ask>(&message.content)) {
    if (ask->to == voice_.id()) Serve(message.origin, *ask, now);
  } else if (const auto* piece = std::get_if<Piece>(&message.content)) {
    if (piece->to == voice_.id()) Take(message.origin, *piece, now);
  }
}

void IndexExchange::Tick(TimePoint now) {
  if (!began_) began_ = happened_ = awaited_ = now;
  if (settling_) Settle(now);
  DropUnwanted(now);
  StartWaiting(now);
  std::vector<uint64_t> silent;
  for (auto& [question, fetch] : active_) {
    if (now - fetch.progress >= kPatience) {
      silent.push_back(question);
    } else {
      AskPieces(fetch, now);
    }
  }
  for (const uint64_t question : silent) Failed(question, now);
  if (!informed()) {
    AskForRanks(now);
    if (KnowsEnough(now)) informed_.store(true, std::memory_order_relaxed);
  }
  std::erase_if(services_, [&](const auto& entry) {
    const Service& service = entry.second;
    return now - service.asked >= kKeep && (service.ready || !service.begun);
  });
  BeginExport();
  sent_in_tick_ = 0;
  SendPieces();
}

void IndexExchange::Left(const std::string& origin, TimePoint now) {
  std::erase_if(services_, [&](const auto& entry) { return entry.first.first == origin; });
  std::vector<uint64_t> left;
  for (const auto& [question, fetch] : active_) {
    if (fetch.tried.back() == origin) left.push_back(question);
  }
  for (const uint64_t question : left) TryNext(question, now);
  if (ranks_peer_ == origin) ranks_peer_.clear();
}

// --- asking -------------------------------------------------------------------------------------

void IndexExchange::Ask(const RankLabel& rank, std::weak_ptr<const void> asker, Answer answer) {
  Later([this, rank, asker = std::move(asker), answer = std::move(answer)]() mutable {
    if (waiting_.size() + active_.size() >= kMostRanks) return answer(nullptr);
    Fetch fetch;
    fetch.rank = rank;
    fetch.asker = std::move(asker);
    fetch.answer = std::move(answer);
    waiting_.push_back(std::move(fetch));
    counts_.asked.fetch_add(1, std::memory_order_relaxed);
  });
}

std::vector<std::string> IndexExchange::PeersBut(const std::vector<std::string>& tried) const {
  std::vector<std::string> alike;
  std::vector<std::string> others;
  for (const auto& [id, peer] : voice_.peers()) {
    if (!peer.presence.informed || std::ranges::find(tried, id) != tried.end()) continue;
    (peer.presence.models == options_.models ? alike : others).push_back(id);
  }
  return alike.empty() ? others : alike;
}

void IndexExchange::Settle(TimePoint now) {
  if (voice_.peers().empty() && options_.awaits_others && options_.awaits_others()) awaited_ = now;
  settling_ = now - awaited_ < kSettle && now - *began_ < kMostSettle;
}

void IndexExchange::DropUnwanted(TimePoint now) {
  std::vector<uint64_t> unwanted;
  for (const auto& [question, fetch] : active_) {
    if (fetch.asker.expired()) unwanted.push_back(question);
  }
  for (const uint64_t question : unwanted) {
    auto dropped = active_.extract(question);
    End(std::move(dropped.mapped()), nullptr, now);
  }
}

void IndexExchange::StartWaiting(TimePoint now) {
  if (!waiting_.empty()) happened_ = now;
  while (!waiting_.empty() && active_.size() < kAtOnce) {
    if (settling_ && PeersBut({}).empty()) return;
    Fetch fetch = std::move(waiting_.front());
    waiting_.pop_front();
    // In a large fleet the last ones wait for longer than their askers do.
    if (fetch.asker.expired() || !AskPeer(fetch, now)) {
      End(std::move(fetch), nullptr, now);
      continue;
    }
    const uint64_t question = fetch.question;
    active_.emplace(question, std::move(fetch));
  }
}

// False: there is no further peer.
bool IndexExchange::AskPeer(Fetch& fetch, TimePoint now) {
  const std::vector<std::string> peers = PeersBut(fetch.tried);
  if (peers.empty() || fetch.failures == kMostFailures) return false;
  fetch.tried.push_back(peers[random_.Below(peers.size())]);
  fetch.question = ++last_question_;
  fetch.pieces = fetch.missing = fetch.last_bytes = 0;
  fetch.bytes = {};
  fetch.here.clear();
  fetch.asked.clear();
  fetch.next = 0;
  fetch.progress = now;
  AskPieces(fetch, now);
  return true;
}

// Before the first piece has come, their number is not known.
void IndexExchange::AskPieces(Fetch& fetch, TimePoint now) {
  for (auto& [piece, asked] : fetch.asked) {
    if (now - asked < kAskAgain) continue;
    asked = now;
    SendAsk(fetch, piece);
  }
  const size_t end = std::max<size_t>(fetch.pieces, 1);
  while (fetch.next < end && fetch.asked.size() < kWindow) {
    fetch.asked.emplace(fetch.next, now);
    SendAsk(fetch, fetch.next++);
  }
}

void IndexExchange::SendAsk(const Fetch& fetch, size_t piece) {
  const std::string& peer = fetch.tried.back();
  struct Ask ask{.to = peer,
                 .question = fetch.question,
                 .about = std::string(kAboutRank),
                 .rank = fetch.rank,
                 .from = piece};
  voice_.TellOne(peer, std::move(ask));
}

void IndexExchange::Take(const std::string& origin, const Piece& piece, TimePoint now) {
  if (piece.question == ranks_question_ && origin == ranks_peer_) return TakeRanks(piece, now);
  const auto found = active_.find(piece.question);
  if (found == active_.end() || found->second.tried.back() != origin) return;
  Fetch& fetch = found->second;
  if (piece.pieces == 0) {
    counts_.refused.fetch_add(1, std::memory_order_relaxed);
    return TryNext(piece.question, now);
  }
  const bool known = fetch.pieces != 0 || TakeHead(fetch, piece);
  const size_t missing = fetch.missing;
  if (!known || !TakeBytes(fetch, piece)) return Failed(piece.question, now);
  // A piece that came before is no progress: a peer that repeats it would never be given up.
  if (fetch.missing < missing) fetch.progress = happened_ = now;
  if (fetch.missing > 0) return AskPieces(fetch, now);
  SendAsk(fetch, fetch.pieces);  // it may be forgotten there
  if (!Complete(fetch, now)) Failed(piece.question, now);
}

bool IndexExchange::TakeHead(Fetch& fetch, const Piece& piece) {
  if (piece.pieces > most_pieces()) return false;
  fetch.pieces = fetch.missing = piece.pieces;
  fetch.here.assign(fetch.pieces, false);
  fetch.bytes.resize(fetch.pieces * kPiece);
  return true;
}

// Every piece but the last has the same length, so that its place is known. A piece that has come
// before is passed over.
bool IndexExchange::TakeBytes(Fetch& fetch, const Piece& piece) {
  if (piece.pieces != fetch.pieces || piece.piece >= fetch.pieces) return false;
  const bool last = piece.piece + 1 == fetch.pieces;
  if (piece.bytes.size() > kPiece || (!last && piece.bytes.size() < kPiece)) return false;
  fetch.asked.erase(piece.piece);
  if (fetch.here[piece.piece]) return true;
  fetch.here[piece.piece] = true;
  --fetch.missing;
  if (last) fetch.last_bytes = piece.bytes.size();
  std::ranges::copy(piece.bytes,
                    fetch.bytes.begin() + static_cast<ptrdiff_t>(piece.piece * kPiece));
  counts_.received_bytes.fetch_add(piece.bytes.size(), std::memory_order_relaxed);
  return true;
}

bool IndexExchange::Complete(Fetch& fetch, TimePoint now) {
  fetch.bytes.resize((fetch.pieces - 1) * kPiece + fetch.last_bytes);
  auto opened = HoldingSnapshot::Open(std::move(fetch.bytes));
  if (!opened || opened->head().rank != fetch.rank) return false;
  counts_.received.fetch_add(1, std::memory_order_relaxed);
  auto done = active_.extract(fetch.question);
  End(std::move(done.mapped()), std::make_shared<const HoldingSnapshot>(*std::move(opened)), now);
  StartWaiting(now);
  return true;
}

void IndexExchange::Failed(uint64_t question, TimePoint now) {
  counts_.failed.fetch_add(1, std::memory_order_relaxed);
  ++active_.at(question).failures;
  TryNext(question, now);
}

void IndexExchange::TryNext(uint64_t question, TimePoint now) {
  auto taken = active_.extract(question);
  Fetch fetch = std::move(taken.mapped());
  happened_ = now;
  if (!AskPeer(fetch, now)) return End(std::move(fetch), nullptr, now);
  const uint64_t next = fetch.question;
  active_.emplace(next, std::move(fetch));
}

void IndexExchange::End(Fetch fetch, std::shared_ptr<const HoldingSnapshot> snapshot,
                        TimePoint now) {
  happened_ = now;
  if (!informed()) answered_.emplace(fetch.rank.worker, fetch.rank.dp_rank);
  snapshot ? static_cast<void>(++given_)
           : static_cast<void>(counts_.without.fetch_add(1, std::memory_order_relaxed));
  fetch.answer(std::move(snapshot));
}

// --- being informed -----------------------------------------------------------------------------

// Others follow ranks that this replica never asks for.
std::vector<std::string> IndexExchange::PeersOfTheSameModels() const {
  std::vector<std::string> alike;
  for (const auto& [id, peer] : voice_.peers()) {
    if (peer.presence.informed && peer.presence.models == options_.models) alike.push_back(id);
  }
  return alike;
}

void IndexExchange::AskForRanks(TimePoint now) {
  if (expected_ || (!ranks_peer_.empty() && now - ranks_asked_ < kAskAgain)) return;
  const std::vector<std::string> peers = PeersOfTheSameModels();
  if (peers.empty()) return;
  ranks_peer_ = peers[random_.Below(peers.size())];
  ranks_asked_ = now;
  ranks_question_ = ++last_question_;
  struct Ask ask{.to = ranks_peer_,
                 .question = ranks_question_,
                 .about = std::string(kAboutRanks),
                 .rank = {},
                 .from = 0};
  voice_.TellOne(ranks_peer_, std::move(ask));
}

void IndexExchange::TakeRanks(const Piece& piece, TimePoint now) {
  const std::string_view bytes = piece.bytes;
  if (piece.pieces != 1 || bytes.size() % kLabelBytes != 0 || bytes.size() > kPiece) return;
  expected_.emplace();
  for (size_t at = 0; at < bytes.size(); at += kLabelBytes) {
    expected_->emplace(LittleEndian(bytes.substr(at, 8)),
                       static_cast<uint32_t>(LittleEndian(bytes.substr(at + 8, 4))));
  }
  happened_ = now;
}

bool IndexExchange::KnowsEnough(TimePoint now) {
  if (settling_) return false;
  if (!waiting_.empty() || !active_.empty()) return false;
  const uint64_t decided = taken_.adopted.load(std::memory_order_relaxed) +
                           taken_.dropped.load(std::memory_order_relaxed);
  const bool all_decided = decided >= given_;
  if (all_decided &&
      (expected_ ? std::ranges::includes(answered_, *expected_) : PeersOfTheSameModels().empty())) {
    return true;
  }
  if (now - happened_ < (all_decided ? kQuiet : kUndecided)) return false;
  if (!all_decided) counts_.by_time.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// --- answering ----------------------------------------------------------------------------------

void IndexExchange::Serve(const std::string& origin, const struct Ask& ask, TimePoint now) {
  if (ask.about == kAboutRank) return ServeRank(origin, ask, now);
  if (ask.about == kAboutRanks) return ServeRanks(origin, ask.question);
}

void IndexExchange::Refuse(std::map<ServiceKey, Service>::iterator service) {
  const auto [origin, question] = service->first;
  services_.erase(service);
  voice_.TellOne(origin,
                 Piece{.to = origin, .question = question, .piece = 0, .pieces = 0, .bytes = {}});
}

// One list at a time: who gets no answer asks again.
void IndexExchange::ServeRanks(const std::string& origin, uint64_t question) {
  if (listing_) return;
  listing_ = true;
  teller_.ListRanks([this, origin, question](std::vector<RankLabel> ranks) {
    Later([this, origin, question, ranks = std::move(ranks)]() mutable {
      listing_ = false;
      ranks.resize(std::min(ranks.size(), kPiece / kLabelBytes));
      std::string bytes = EncodeLabels(ranks);
      counts_.sent_bytes.fetch_add(bytes.size(), std::memory_order_relaxed);
      voice_.TellOne(origin, Piece{.to = origin,
                                   .question = question,
                                   .piece = 0,
                                   .pieces = 1,
                                   .bytes = std::move(bytes)});
    });
  });
}

void IndexExchange::ServeRank(const std::string& origin, const struct Ask& ask, TimePoint now) {
  const ServiceKey key(origin, ask.question);
  auto found = services_.find(key);
  if (found == services_.end()) {
    if (ask.from != 0) return;  // forgotten
    const auto of_one = std::ranges::count_if(
        services_, [&](const auto& entry) { return entry.first.first == origin; });
    if (services_.size() == kMostServices || static_cast<size_t>(of_one) == kMostServicesOfOne) {
      return;  // it asks again
    }
    services_.emplace(key, Service{.rank = ask.rank, .since = now, .asked = now});
    return BeginExport();
  }
  Service& service = found->second;
  service.asked = now;
  if (service.postponed) {
    if (now - service.since >= kPostpone) return Refuse(found);
    service.postponed = false;
    return BeginExport();
  }
  if (!service.ready) return;
  if (ask.from >= PiecesIn(service.bytes)) {
    services_.erase(found);
    return;
  }
  if (sending_.size() < kMostSending) sending_.push_back({key, ask.from});
  SendPieces();
}

size_t IndexExchange::served_bytes() const {
  size_t bytes = 0;
  for (const auto& [key, service] : services_) bytes += service.bytes.size();
  return bytes;
}

void IndexExchange::BeginExport() {
  if (exporting_) return;
  const auto next = std::ranges::find_if(
      services_, [](const auto& entry) { return !entry.second.begun && !entry.second.postponed; });
  const size_t used = served_bytes();
  if (next == services_.end() || used >= options_.most_bytes) return;
  exporting_ = true;
  next->second.begun = true;
  auto told = [this, key = next->first](Result<std::string> snapshot) {
    Later([this, key, snapshot = std::move(snapshot)]() mutable {
      Exported(key, std::move(snapshot));
    });
  };
  teller_.Export(next->second.rank, options_.most_bytes - used, std::move(told));
}

void IndexExchange::Exported(const ServiceKey& key, Result<std::string> snapshot) {
  exporting_ = false;
  const auto found = services_.find(key);
  if (found != services_.end() && snapshot) {
    counts_.served.fetch_add(1, std::memory_order_relaxed);
    found->second.ready = true;
    found->second.bytes = *std::move(snapshot);
    sending_.push_back({key, 0});
    SendPieces();
  } else if (found != services_.end() && snapshot.error().blame == Blame::kOverload) {
    found->second.begun = false;
    found->second.postponed = true;
  } else if (found != services_.end()) {
    Refuse(found);
  }
  BeginExport();
}

void IndexExchange::SendPieces() {
  while (!sending_.empty() && sent_in_tick_ < kPiecesPerTick) {
    const Sending sending = std::move(sending_.front());
    sending_.pop_front();
    const auto found = services_.find(sending.service);
    if (found == services_.end()) continue;
    const std::string& bytes = found->second.bytes;
    Piece piece{.to = sending.service.first,
                .question = sending.service.second,
                .piece = sending.piece,
                .pieces = PiecesIn(bytes),
                .bytes = bytes.substr(sending.piece * kPiece, kPiece)};
    ++sent_in_tick_;
    counts_.sent_bytes.fetch_add(piece.bytes.size(), std::memory_order_relaxed);
    voice_.TellOne(sending.service.first, std::move(piece));
  }
}

}  // namespace fathom
