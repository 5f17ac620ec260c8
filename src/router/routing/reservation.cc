#include "router/routing/reservation.h"

#include <utility>

namespace fathom {

Reservation::Reservation(Steering& steering, const Steering::Choice& choice,
                         const RouteQuestion& question, Answer answer, TimePoint now)
    : world_(steering.world()),
      rank_(*choice.place.rank),
      answer_(answer),
      sent_at_(now),
      life_(rank_.life()),
      now_(now) {
  const RankView& rank = choice.decision->rank();
  const double work = choice.decision->price().work / rank.slowness;
  const uint32_t prompt = choice.decision->prompt.tokens;
  ahead_ = rank.load.backlog + work;
  const auto kind =
      answer == Answer::kStreamed ? RankLoad::Kind::kAnnounced : RankLoad::Kind::kSilent;
  const uint64_t brought = world_.sent.Begin(sending_, rank.rank, steering.marks(), now);
  rest_ = prompt - sending_.covered();
  rank_.load.Enter(stay_, kind, work, brought + rest_, now);
  if (world_.approximate && !question.tokens.empty() && !question.by_text) {
    guess_ = world_.approximate->Send(rank.rank, question.tokens, question.seed, now);
  }
}

void Reservation::FirstByte(TimePoint now) {
  now_ = now;
  if (std::exchange(first_byte_, true)) return;
  rank_.load.FirstByte(stay_, now);
  world_.sent.FirstByte(sending_, now);
  if (answer_ != Answer::kStreamed) return;
  // An engine that was stopped and goes on, or that another process has replaced, shows no speed.
  const uint64_t life = rank_.life();
  if (life != life_) return;
  const auto took = static_cast<double>((now - sent_at_).count());
  const double expected = ahead_ * world_.speed.unit();
  rank_.slowness.Observe({.work = ahead_, .ratio = took / expected, .life = life_}, life, now);
  world_.speed.Observe(ahead_, now - sent_at_);
}

void Reservation::Release(TimePoint now) {
  if (std::exchange(released_, true)) return;
  const uint64_t taken = world_.sent.End(sending_, now);
  rank_.load.SetShare(stay_, taken + rest_);
  rank_.load.Leave(stay_, now);
  if (guess_ != 0 && !first_byte_) world_.approximate->Withdraw(guess_);
}

}  // namespace fathom
