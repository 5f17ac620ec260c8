// The same messages however the stream is split, and every reader survives every message.
#include <string>
#include <vector>

#include "base/check.h"
#include "io/etcd/etcd_address.h"
#include "io/etcd/etcd_message.h"

namespace fathom {
namespace {

constexpr size_t kLongest = 4096;

std::vector<std::string> MessagesInPieces(std::string_view in, size_t piece) {
  EtcdLines lines(kLongest);
  std::vector<std::string> messages;
  while (!in.empty()) {
    const std::string_view now = in.substr(0, piece);
    in.remove_prefix(now.size());
    if (!lines.Feed(now)) break;
    while (auto line = lines.Next()) messages.push_back(*std::move(line));
  }
  return messages;
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  const std::string_view in(reinterpret_cast<const char*>(data), size);
  if (size < kLongest) {
    const auto whole = MessagesInPieces(in, in.size());
    for (const size_t piece : {1, 3, 64}) CHECK(MessagesInPieces(in, piece) == whole);
  }
  for (const std::string& line : MessagesInPieces(in, 64)) {
    if (const auto watch = ReadEtcdWatch(line)) {
      for (const EtcdEvent& event : watch->events) CHECK(!event.pair.key.empty());
      CHECK(watch->reason.size() <= EtcdRefusal::kMaxMessage);
    }
    (void)ReadEtcdRange(line);
    (void)ReadEtcdLease(line);
    (void)ReadEtcdTransaction(line);
    (void)ReadEtcdToken(line);
    CHECK(ReadEtcdRefusal(line).message.size() <= EtcdRefusal::kMaxMessage);
  }
  // What an address holds has the form that the client relies on.
  if (const auto address = EtcdAddress::Parse(in)) {
    CHECK(!address->hosts.empty());
    CHECK(address->prefix.empty() || address->prefix.ends_with('/'));
  }
  return 0;
}
