// Where a worker is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fathom {

struct Url {
  std::string scheme;  // "http" or "https"
  std::string host;    // lower case; an IPv6 address without its brackets
  uint16_t port = 0;   // always set: 80 or 443 where the text names none
  std::string path;    // what requests are prefixed with: "" or "/base", never a trailing slash

  // Accepts "http://host:port/base". Refuses user info, queries, fragments, other schemes, spaces
  // and control bytes, each with a message that names the text and what is wanted.
  static Result<Url> Parse(std::string_view text);

  bool tls() const { return scheme == "https"; }
  // As a Host header wants it: "host:port", IPv6 in brackets, default ports left out.
  std::string HostHeader() const;
  // The one spelling of this URL; equal URLs have equal text. Ports are always written.
  std::string ToString() const;

  friend bool operator==(const Url&, const Url&) = default;
};

// "a%2Fb" is "a/b". A percent sign that no two hexadecimal digits follow stays as it is.
std::string PercentDecode(std::string_view text);

}  // namespace fathom
