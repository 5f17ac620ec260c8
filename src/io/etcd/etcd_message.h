// What does this message of etcd's JSON gateway contain? No I/O.
//
// Keys and values are base64, whole numbers are text ("7"), fields with their default value are
// missing. Numbers that are not text are accepted, too. Unknown fields are ignored.
//
// Errors  kPeer. A message that cannot be read never changes anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fathom {

struct EtcdHeader {
  uint64_t cluster = 0;
  uint64_t revision = 0;  // of the whole store
};

struct EtcdPair {
  std::string key;
  std::string value;
  uint64_t changed = 0;  // the revision of its last change (mod_revision)
  uint64_t lease = 0;    // 0: none
  bool unread = false;   // the value is too long to be read
};

struct EtcdRange {
  EtcdHeader header;
  std::vector<EtcdPair> pairs;
  bool more = false;
  uint64_t count = 0;  // of all keys in the range, beyond the limit, too
};

struct EtcdEvent {
  bool gone = false;
  EtcdPair pair;  // gone: without a value
};

struct EtcdWatchMessage {
  EtcdHeader header;
  bool created = false;
  bool canceled = false;
  bool fragment = false;          // more of the same revision follows
  uint64_t compact_revision = 0;  // canceled because older revisions are no longer stored
  std::string reason;             // of the cancellation, or the error that ends the stream
  std::vector<EtcdEvent> events;
};

struct EtcdLease {
  EtcdHeader header;
  uint64_t id = 0;
  uint64_t ttl = 0;  // seconds; 0: the lease does not exist
};

struct EtcdTransaction {
  EtcdHeader header;
  bool succeeded = false;
  std::optional<EtcdPair> found;  // of the first range in the answer
};

// An answer that is not 200, or the error inside a stream.
struct EtcdRefusal {
  static constexpr size_t kMaxMessage = 200;

  int code = 0;         // gRPC's; 0: the body has none
  std::string message;  // printable, at most kMaxMessage bytes
};

Result<EtcdRange> ReadEtcdRange(std::string_view text);
Result<EtcdWatchMessage> ReadEtcdWatch(std::string_view line);
Result<EtcdLease> ReadEtcdLease(std::string_view text);
Result<EtcdTransaction> ReadEtcdTransaction(std::string_view text);
Result<std::string> ReadEtcdToken(std::string_view text);
Result<EtcdHeader> ReadEtcdHeader(std::string_view text);
EtcdRefusal ReadEtcdRefusal(std::string_view body);

// The first key that does not begin with `prefix`: the end of its range.
std::string EtcdRangeEnd(std::string_view prefix);

// Splits a stream into its messages, which newlines separate.
//
// Memory  At most kMaxLine bytes of a message that is not complete.
class EtcdLines {
 public:
  static constexpr size_t kMaxLine = 16 << 20;

  explicit EtcdLines(size_t max_line = kMaxLine) : max_line_(max_line) {}

  // Call it when Next() has returned nullopt. False if a message is longer than allowed; the stream
  // must be given up then.
  bool Feed(std::string_view bytes);
  std::optional<std::string> Next();

 private:
  const size_t max_line_;
  std::string held_;
  size_t begin_ = 0;    // of the first message that has not been returned
  size_t scanned_ = 0;  // no newline before it
};

}  // namespace fathom
