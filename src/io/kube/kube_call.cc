#include "io/kube/kube_call.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "io/http/fetch.h"

namespace fathom {

Task<Result<void>> KubeCall::Send(const KubePass& pass, std::string_view path, TimePoint deadline) {
  std::string head;
  AppendRequestHead(head, "GET", pass.endpoint.Called(), path);
  head += "connection: close\r\naccept: application/json\r\naccept-encoding: identity\r\n";
  if (!pass.authorization.empty()) {
    head.append("authorization: ").append(pass.authorization).append("\r\n");
  }
  head += "\r\n";
  auto opening = connection_.Open(pass.endpoint, resolver_, deadline);
  auto opened = co_await opening;
  if (!opened) co_return std::unexpected(std::move(opened).error());
  connection_.socket().ProbeWhenIdle();
  auto sending = SendRequest(connection_, head, deadline);
  auto sent = co_await sending;
  if (!sent) co_return std::unexpected(std::move(sent).error());
  answer_.set_deadline(deadline);
  auto reading = answer_.Read();
  auto read = co_await reading;
  if (!read) co_return std::unexpected(std::move(read).error());
  TakeHead();
  co_return Result<void>();
}

Task<Result<std::string>> KubeCall::ReadAll(size_t most) {
  std::string body;
  for (;;) {
    for (const std::string_view piece : pieces()) body += piece;
    if (body.size() > most) {
      co_return Fail(Blame::kPeer, "the answer is longer than {} bytes", most);
    }
    if (over()) co_return body;
    auto reading = Read();
    auto read = co_await reading;
    if (!read) co_return std::unexpected(std::move(read).error());
  }
}

void KubeCall::TakeHead() {
  const ResponseHead& head = answer_.head();
  status_ = head.status;
  if (const Header* type = head.headers.Find("content-type")) {
    const std::string_view bare = Trim(type->value.substr(0, type->value.find(';')));
    json_ = EqualsIgnoreCase(bare, "application/json");
  }
  if (const Header* after = head.headers.Find("retry-after")) {
    constexpr uint64_t kMost = 3600;
    retry_after_ =
        std::chrono::seconds(std::min(ParseDecimal(Trim(after->value)).value_or(0), kMost));
  }
}

}  // namespace fathom
