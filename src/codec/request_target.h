// Which host, path and query does a request's target name, and does every server read the path
// alike?
//
// Memory  Views into the target.
#pragma once

#include <string_view>

namespace fathom {

struct RequestTarget {
  std::string_view authority;  // of "http://host:port/path"; empty if the target has none
  std::string_view path;       // begins with '/', or is "*"
  std::string_view query;      // with its '?'; empty if there is none

  // `target` is one that ParseRequestHead() has accepted.
  static RequestTarget Of(std::string_view target);
};

// The path has a segment "." or "..", plain or percent-encoded (also twice), with slashes or
// backslashes around it, or with parameters behind it ("..;x").
bool HasDotSegments(std::string_view path);

// Every server splits the path into the same segments: no dot segments, no empty segment, no
// backslash, no encoded slash, backslash, percent sign or control byte, no broken percent-encoding.
bool HasOneReading(std::string_view path);

}  // namespace fathom
