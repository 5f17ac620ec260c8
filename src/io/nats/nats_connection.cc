#include "io/nats/nats_connection.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/peer_text.h"
#include "io/net/connect_race.h"

namespace fathom {
namespace {

constexpr int kMostUnanswered = 2;
constexpr Duration kLastWords = std::chrono::milliseconds(100);

constexpr const char* kSilent = "the NATS server does not answer";
constexpr const char* kGone = "the NATS server closed the connection";
constexpr const char* kNotNats = "what listens there does not speak as a NATS server does";

iovec PartOf(std::string_view text) {
  return {.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
}

Error ProblemOf(NetError error) {
  if (error.cause == NetCause::kRefused) error.what = "no NATS server listens there";
  if (error.cause == NetCause::kTimeout) error.what = kSilent;
  return error;
}

}  // namespace

NatsConnection::NatsConnection(Loop& loop, const NatsOptions& options)
    : loop_(loop),
      options_(options),
      reader_(options.longest_message),
      buffer_(new char[kBuffer]),
      read_share_(loop),
      write_share_(loop) {}

void NatsConnection::End(std::string why) {
  if (ended_) return;
  ended_ = true;
  problem_ = std::move(why);
  cancellation_.Cancel();
  if (socket_) socket_->Cancel();
}

void NatsConnection::Close() { End("it was closed on this side"); }

// --- opening ---------------------------------------------------------------------------------

Task<Result<void>> NatsConnection::Open(Resolver& resolver, std::string url,
                                        const std::vector<std::string>& subjects) {
  const TimePoint deadline = loop_.now() + options_.connect_time;
  TRY_CO(const NatsPlace place, NatsPlace::Parse(url));
  auto dialling = Dial(resolver, place, deadline);
  auto dialled = co_await dialling;
  if (!dialled) co_return dialled;
  auto reading = ReadInfo(deadline);
  auto read = co_await reading;
  TRY_CO(const NatsInfo info, std::move(read));
  max_payload_ = info.max_payload;
  const bool wanted = options_.tls || place.tls;
  if (wanted && !info.tls_required && !info.tls_available) {
    co_return Fail(Blame::kPeer, "the NATS server has no TLS, and tls:// wants it");
  }
  if (wanted || info.tls_required) {
    auto securing = Secure(place.host, deadline);
    auto secured = co_await securing;
    if (!secured) co_return secured;
  }
  TRY_CO(const std::string hello, NatsHello(options_, info, subjects));
  std::array<iovec, 1> parts = {PartOf(hello)};
  auto writing = Write(parts);
  co_await writing;  // if it failed, the server may have said why
  auto waiting = AwaitPong(deadline);
  auto answered = co_await waiting;
  if (answered) next_ping_ = loop_.now() + options_.ping_every;
  co_return answered;
}

Task<Result<void>> NatsConnection::Dial(Resolver& resolver, const NatsPlace& place,
                                        TimePoint deadline) {
  auto resolving = resolver.Resolve(loop_, place.host, place.port, deadline, &cancellation_);
  auto addresses = co_await resolving;
  if (!addresses) co_return std::unexpected(ProblemOf(std::move(addresses).error()));
  auto connecting = ConnectFirst(loop_, *std::move(addresses), deadline, &cancellation_);
  auto connected = co_await connecting;
  if (!connected) co_return std::unexpected(ProblemOf(std::move(connected).error()));
  if (ended_) co_return Fail(Blame::kPeer, "{}", problem_);
  socket_ = *std::move(connected);
  co_return Result<void>();
}

Task<Result<NatsInfo>> NatsConnection::ReadInfo(TimePoint deadline) {
  auto reading = Read(deadline);
  const NatsReader::Step step = co_await reading;
  // A server that has too many clients says so at once.
  if (step == NatsReader::Step::kError) End(Shown(reader_.text()));
  if (ended_) co_return Fail(Blame::kPeer, "{}", problem_);
  if (step != NatsReader::Step::kInfo) co_return Fail(Blame::kPeer, "{}", kNotNats);
  co_return NatsInfo::Parse(reader_.text());
}

Task<Result<void>> NatsConnection::Secure(std::string host, TimePoint deadline) {
  // Somebody in between could have said it.
  if (!unread_.empty()) {
    co_return Fail(Blame::kPeer, "the NATS server goes on without the TLS that it has");
  }
  TRY_CO(tls_, NatsTls(options_));
  socket_->StartTls(*tls_, host);
  const IoResult shaken = co_await socket_->Handshake(deadline);
  if (shaken.ok() && !ended_) co_return Result<void>();
  if (shaken.status == IoStatus::kTimeout) co_return Fail(Blame::kPeer, "{}", kSilent);
  const bool refused = shaken.status == IoStatus::kError;
  co_return Fail(Blame::kPeer, "TLS handshake: {}",
                 refused ? socket_->TlsProblem() : std::string(Describe(shaken.status)));
}

// Messages that come before are not for one who is not there yet.
Task<Result<void>> NatsConnection::AwaitPong(TimePoint deadline) {
  for (;;) {
    auto reading = Read(deadline);
    const NatsReader::Step step = co_await reading;
    if (step == NatsReader::Step::kError && !Stays()) End(problem_);
    if (ended_) co_return Fail(Blame::kPeer, "{}", problem_);
    if (step == NatsReader::Step::kPing) owes_pong_ = true;
    if (step == NatsReader::Step::kPong) co_return Result<void>();
    // A server that never stops sending never lets a read wait until the deadline.
    if (loop_.now() >= deadline) End(kSilent);
  }
}

// --- afterwards ------------------------------------------------------------------------------

Task<NatsNews> NatsConnection::Next() {
  for (;;) {
    auto reading = Read(kNever);
    const NatsReader::Step step = co_await reading;
    if (ended_) co_return NatsNews::kEnded;
    switch (step) {
      case NatsReader::Step::kMessage:
        co_return NatsNews::kMessage;
      case NatsReader::Step::kPing:
        owes_pong_ = true;
        co_return NatsNews::kDue;
      case NatsReader::Step::kError:
        if (Stays()) co_return NatsNews::kProblem;
        End(problem_);
        co_return NatsNews::kEnded;
      default:  // an answer to our ping, or news about the cluster
        break;
    }
  }
}

bool NatsConnection::Stays() {
  const std::string_view said = reader_.text();
  problem_ = Shown(said);
  return said.starts_with("Permissions Violation");
}

// kFault: it has ended.
Task<NatsReader::Step> NatsConnection::Read(TimePoint deadline) {
  for (;;) {
    if (read_share_.Spent(std::exchange(taken_, 0))) co_await Yield(loop_);
    if (ended_) co_return NatsReader::Step::kFault;
    const size_t before = unread_.size();
    const NatsReader::Step step = reader_.Take(unread_);
    taken_ += before - unread_.size();
    if (step == NatsReader::Step::kFault) End(kNotNats);
    if (step != NatsReader::Step::kMore) co_return step;
    const std::span<char> into(buffer_.get(), kBuffer);
    const IoResult read = co_await socket_->Read(into, std::min(deadline, last_words_until_));
    if (ended_) co_return NatsReader::Step::kFault;
    if (read.ok()) {
      unread_ = {buffer_.get(), read.bytes};
      unanswered_ = 0;
      continue;
    }
    const bool failing = last_words_until_ != kNever;
    if (failing && read.status == IoStatus::kCancelled && loop_.now() < last_words_until_) continue;
    End(read.status == IoStatus::kTimeout && !failing ? kSilent : WhyGone());
    co_return NatsReader::Step::kFault;
  }
}

// A server that wants a certificate says so after the handshake.
std::string NatsConnection::WhyGone() const {
  const std::string why = tls_ == nullptr ? "" : socket_->TlsProblem();
  return why.empty() ? kGone : fmt::format("{} (TLS: {})", kGone, Shown(why));
}

Task<bool> NatsConnection::Upkeep() {
  std::string bytes;
  if (std::exchange(owes_pong_, false)) bytes += "PONG\r\n";
  if (loop_.now() >= next_ping_) {
    if (unanswered_ >= kMostUnanswered) End(kSilent);
    ++unanswered_;
    next_ping_ = loop_.now() + options_.ping_every;
    bytes += "PING\r\n";
  }
  if (bytes.empty()) co_return !ended_;
  std::array<iovec, 1> parts = {PartOf(bytes)};
  auto writing = Write(parts);
  const bool written = co_await writing;
  co_return written;
}

Task<bool> NatsConnection::Publish(const OutboxItem& item) {
  if (write_share_.Spent(std::exchange(written_, 0))) co_await Yield(loop_);
  const std::string line = fmt::format("PUB {} {}\r\n", item.to, item.bytes->size());
  std::array<iovec, 3> parts = {PartOf(line), PartOf(*item.bytes), PartOf("\r\n")};
  auto writing = Write(parts);
  const bool written = co_await writing;
  written_ += item.bytes->size();
  co_return written;
}

Task<bool> NatsConnection::Write(std::span<iovec> parts) {
  if (ended_ || last_words_until_ != kNever) co_return false;
  const IoResult written = co_await socket_->Write(parts, loop_.now() + options_.write_time);
  if (written.ok()) co_return true;
  if (written.status == IoStatus::kTimeout) End("the NATS server does not take what is sent");
  if (!ended_) {
    last_words_until_ = loop_.now() + kLastWords;
    socket_->Cancel();
  }
  co_return false;
}

}  // namespace fathom
