#include "io/etcd/etcd_stream.h"

#include <fmt/format.h>

#include <utility>

#include "codec/base64.h"
#include "codec/json.h"

namespace fathom {
namespace {

constexpr size_t kMaxRefusal = 64 << 10;

std::string WatchBody(std::string_view key, std::string_view range_end, uint64_t from_revision) {
  JsonWriter body;
  body.BeginObject().Key("create_request").BeginObject();
  body.Key("key").String(EncodeBase64(key));
  body.Key("range_end").String(EncodeBase64(range_end));
  body.Key("start_revision").String(std::to_string(from_revision));
  body.Key("progress_notify").Bool(true);
  body.Key("fragment").Bool(true);  // no message is much longer than the largest write
  body.EndObject().EndObject();
  return body.Take();
}

}  // namespace

EtcdError EtcdStream::Broken(EtcdCause cause, std::string_view what, int detail) const {
  return {{Blame::kPeer, fmt::format("{}: {}", endpoint_.url.HostHeader(), what)}, cause, detail};
}

Task<EtcdResult<void>> EtcdStream::Open(std::string key, std::string range_end,
                                        uint64_t from_revision) {
  const TimePoint deadline = client_.loop().now() + client_.patience();
  const auto as_error = [this](std::string_view what, NetCause cause) {
    const bool ours = cause == NetCause::kCancelled;
    return std::unexpected(Broken(ours ? EtcdCause::kCancelled : EtcdCause::kUnreachable, what,
                                  1000 + static_cast<int>(cause)));
  };
  auto opening = connection_.Open(endpoint_, client_.resolver(), deadline);
  auto opened = co_await opening;
  if (!opened) co_return as_error(opened.error().what, opened.error().cause);
  const std::string body = WatchBody(key, range_end, from_revision);
  std::string out;
  AppendRequestHead(out, "POST", endpoint_.Called(), "/v3/watch");
  if (!client_.token().empty())
    out.append("authorization: ").append(client_.token()).append("\r\n");
  out += fmt::format("content-type: application/json\r\ncontent-length: {}\r\n\r\n", body.size());
  out += body;
  connection_.BeginAnswer();
  const IoResult sent = co_await connection_.socket().Write(out, deadline);
  if (!sent.ok()) co_return as_error(Describe(sent.status), CauseOf(sent.status));
  for (;;) {
    auto parsed = connection_.ParseHead(false);
    if (!parsed) co_return std::unexpected(Broken(EtcdCause::kBadAnswer, parsed.error().what));
    if (*parsed) break;
    const IoResult read = co_await connection_.socket().Read(connection_.in().room(), deadline);
    if (!read.ok()) co_return as_error(Describe(read.status), CauseOf(read.status));
    connection_.in().Commit(read.bytes);
  }
  const int status = connection_.head().status;
  connection_.in().Consume(connection_.head_size());
  if (status == 200) co_return EtcdResult<void>();
  auto reading = ReadRefusal(deadline);
  auto refusal = co_await reading;
  EtcdError error = EtcdErrorOf(status, refusal ? *refusal : std::string());
  error.what.insert(0, endpoint_.url.HostHeader() + ": ");
  co_return std::unexpected(std::move(error));
}

Task<EtcdResult<std::string>> EtcdStream::ReadRefusal(TimePoint deadline) {
  std::string text;
  for (;;) {
    while (!connection_.in().empty() && !connection_.body().done()) {
      auto step = connection_.body().Feed(connection_.in().view());
      if (!step) co_return text;
      text += step->payload;
      connection_.in().Consume(step->consumed);
    }
    if (connection_.body().done() || text.size() > kMaxRefusal) co_return text;
    connection_.in().Compact();
    const IoResult read = co_await connection_.socket().Read(connection_.in().room(), deadline);
    if (!read.ok()) co_return text;
    connection_.in().Commit(read.bytes);
  }
}

EtcdResult<void> EtcdStream::TakeBody() {
  while (!connection_.in().empty() && !connection_.body().done()) {
    auto step = connection_.body().Feed(connection_.in().view());
    if (!step) return std::unexpected(Broken(EtcdCause::kBadAnswer, step.error().what));
    const bool fits = lines_.Feed(step->payload);
    connection_.in().Consume(step->consumed);
    if (!fits) {
      return std::unexpected(Broken(
          EtcdCause::kBadAnswer,
          fmt::format("a message of the watch is longer than {} bytes", EtcdLines::kMaxLine)));
    }
    // One piece at a time: the reader of lines holds one message that is not complete.
    if (!step->payload.empty()) return {};
  }
  connection_.in().Compact();
  return {};
}

Task<EtcdResult<std::optional<EtcdWatchMessage>>> EtcdStream::Next(TimePoint until) {
  for (;;) {
    if (const auto line = lines_.Next()) {
      auto message = ReadEtcdWatch(*line);
      if (!message) {
        co_return std::unexpected(Broken(EtcdCause::kBadAnswer, message.error().what));
      }
      co_return std::optional<EtcdWatchMessage>(*std::move(message));
    }
    if (!connection_.in().empty() && !connection_.body().done()) {
      auto taken = TakeBody();
      if (!taken) co_return std::unexpected(std::move(taken).error());
      continue;
    }
    if (connection_.body().done()) {
      co_return std::unexpected(Broken(EtcdCause::kUnreachable, "etcd ended the watch"));
    }
    connection_.in().Compact();
    const IoResult read = co_await connection_.socket().Read(connection_.in().room(), until);
    if (read.status == IoStatus::kTimeout) co_return std::optional<EtcdWatchMessage>();
    if (!read.ok()) {
      const bool ours = read.status == IoStatus::kCancelled;
      const EtcdCause cause = ours ? EtcdCause::kCancelled : EtcdCause::kUnreachable;
      co_return std::unexpected(Broken(cause,
                                       fmt::format("the watch broke: {}", Describe(read.status)),
                                       1000 + static_cast<int>(CauseOf(read.status))));
    }
    connection_.in().Commit(read.bytes);
  }
}

}  // namespace fathom
