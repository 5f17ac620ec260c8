// The address of a worker.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fathom {

struct Url {
  std::string scheme;  // "http" or "https"
  std::string host;    // lower case; an IPv6 address without its brackets
  uint16_t port = 0;   // always set: 80 or 443 if the text has none
  std::string path;    // prefix of request paths: "" or "/base", never with a trailing slash

  // Accepts "http://host:port/base". Refuses user info, queries, fragments, other schemes, spaces
  // and control bytes, each with a message that contains the text and the expected form.
  static Result<Url> Parse(std::string_view text);

  bool tls() const { return scheme == "https"; }
  // In the form of a Host header: "host:port", IPv6 in brackets, default ports left out.
  std::string HostHeader() const;
  // The normalized spelling of this URL; equal URLs have equal text. Ports are always included.
  std::string ToString() const;

  friend bool operator==(const Url&, const Url&) = default;
};

// "a%2Fb" becomes "a/b". A percent sign without two hexadecimal digits is unchanged.
std::string PercentDecode(std::string_view text);

}  // namespace fathom
