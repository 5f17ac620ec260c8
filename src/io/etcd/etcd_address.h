// Which servers and which keys does etcd://HOST:2379,HOST:2379/PREFIX mean?
//
// PREFIX stands for the keys below PREFIX + "/": etcd://HOST/fleet is every key that begins with
// "fleet/". The slash after the hosts is not part of the key; a key that begins with a slash is
// written with two: etcd://HOST//fleet is "/fleet/". Slashes at the end do not count. %2C and the
// like are decoded. Without a port it is 2379. etcds:// is the same over TLS.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/url.h"

namespace fathom {

struct EtcdAddress {
  static constexpr size_t kMaxHosts = 16;
  static constexpr size_t kMaxPrefix = 1024;  // bytes

  std::vector<Url> hosts;  // http:// or https://
  std::string prefix;      // ends with a slash; empty: the text names none

  static bool Is(std::string_view text);
  // Refuses user names and passwords in the text, because it is shown in logs and pages.
  static Result<EtcdAddress> Parse(std::string_view text);

  // The keys below `prefix` as it is typed: "fleet", "fleet/" and "/fleet" are "fleet/", "fleet/"
  // and "/fleet/".
  static Result<std::string> KeysBelow(std::string_view prefix);

  bool tls() const { return !hosts.empty() && hosts.front().tls(); }
  // The normalized spelling; equal addresses have equal text.
  std::string ToString() const;
};

}  // namespace fathom
