#include "codec/http_head.h"

#include <array>
#include <cstring>
#include <limits>
#include <optional>

#include "base/text.h"
#include "codec/byte_scan.h"

namespace fathom {
namespace {

// Inside this file an error is its text, or nullptr for success, which is cheap to return. The
// public functions add the blame.
using Problem = const char*;

// Where a byte is allowed.
enum ByteClass : uint8_t { kToken = 1, kTarget = 2, kAuthority = 4 };

constexpr std::array<uint8_t, 256> kClasses = [] {
  std::array<uint8_t, 256> classes{};
  const auto add = [&](std::string_view bytes, uint8_t what) {
    for (const char c : bytes) classes[static_cast<unsigned char>(c)] |= what;
  };
  // A fragment is not part of a target, and parsers disagree about where one begins.
  for (int c = 0x21; c <= 0x7e; ++c) classes[c] |= c == '#' ? 0 : kTarget;
  add("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", kToken | kAuthority);
  add("!#$%&'*+-.^_`|~", kToken);
  // Neither '@' nor ',': '@' could hide a user name, ',' could turn one host into two.
  add("-._~%!$&'()*+;=:[]", kAuthority);
  return classes;
}();

bool Is(char c, uint8_t what) { return (kClasses[static_cast<unsigned char>(c)] & what) != 0; }

bool IsAuthority(std::string_view text) {
  for (const char c : text) {
    if (!Is(c, kAuthority)) return false;
  }
  return true;
}

uint64_t Word(const char* from) {
  uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

// `name` is as long as `lower` and has no control bytes. For all other bytes, setting bit 5 changes
// letters to lower case and turns no other byte into a letter or a dash.
template <size_t N>
bool Matches(const char* name, const char (&lower)[N]) {
  constexpr size_t kLength = N - 1;
  uint64_t difference = 0;
  if constexpr (kLength < 8) {
    for (size_t i = 0; i < kLength; ++i) difference |= (name[i] | 0x20) ^ lower[i];
  } else {
    constexpr uint64_t kLowerCase = 0x2020202020202020;
    const auto compare = [&](size_t at) {
      difference |= (Word(name + at) | kLowerCase) ^ Word(lower + at);
    };
    for (size_t at = 0; at + 8 <= kLength; at += 8) compare(at);
    compare(kLength - 8);
  }
  return difference == 0;
}

HeaderName Recognise(std::string_view name) {
  using enum HeaderName;
  const char* const at = name.data();
  switch (name.size()) {
    case 2:
      return Matches(at, "te") ? kTe : kOther;
    case 4:
      return Matches(at, "host") ? kHost : Matches(at, "date") ? kDate : kOther;
    case 6:
      return Matches(at, "expect") ? kExpect : Matches(at, "server") ? kServer : kOther;
    case 7:
      return Matches(at, "trailer") ? kTrailer : Matches(at, "upgrade") ? kUpgrade : kOther;
    case 9:
      return Matches(at, "thread-id") ? kThreadId : kOther;
    case 10:
      if (Matches(at, "connection")) return kConnection;
      return Matches(at, "keep-alive") ? kKeepAlive : kOther;
    case 11:
      return Matches(at, "retry-after") ? kRetryAfter : kOther;
    case 12:
      if (Matches(at, "content-type")) return kContentType;
      if (Matches(at, "x-request-id")) return kRequestId;
      return Matches(at, "x-session-id") ? kSessionId : kOther;
    case 13:
      return Matches(at, "authorization") ? kAuthorization : kOther;
    case 14:
      return Matches(at, "content-length") ? kContentLength : kOther;
    case 15:
      return Matches(at, "x-fathom-worker") ? kFathomWorker : kOther;
    case 16:
      if (Matches(at, "x-fathom-routing")) return kFathomRouting;
      if (Matches(at, "x-fathom-dp-rank")) return kFathomDpRank;
      return Matches(at, "proxy-connection") ? kProxyConnection : kOther;
    case 17:
      return Matches(at, "transfer-encoding") ? kTransferEncoding : kOther;
    case 18:
      if (Matches(at, "x-fathom-forwarded")) return kFathomForwarded;
      return Matches(at, "proxy-authenticate") ? kProxyAuthenticate : kOther;
    case 19:
      if (Matches(at, "x-dynamo-session-id")) return kDynamoSessionId;
      return Matches(at, "proxy-authorization") ? kProxyAuthorization : kOther;
    case 20:
      return Matches(at, "x-data-parallel-rank") ? kDataParallelRank : kOther;
    case 22:
      if (Matches(at, "x-claude-code-agent-id")) return kClaudeCodeAgentId;
      return Matches(at, "x-fathom-cached-tokens") ? kFathomCachedTokens : kOther;
    case 24:
      return Matches(at, "x-claude-code-session-id") ? kClaudeCodeSessionId : kOther;
    default:
      return kOther;
  }
}

// What the headers of a request or response determine about its body and its connection.
struct Facts {
  uint64_t content_length = 0;
  bool close = false;
  bool keep_alive = false;

  bool KeepsAlive(int minor_version) const { return !close && (minor_version == 1 || keep_alive); }
};

Problem NoteLength(std::string_view value, Facts& facts) {
  const std::optional<uint64_t> length = ParseDecimal(value);
  if (!length || *length > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return "Content-Length is not a decimal number";
  }
  facts.content_length = *length;
  return nullptr;
}

void NoteConnection(std::string_view value, Facts& facts) {
  // The value of nearly every Connection header.
  if (value.size() == 10 && Matches(value.data(), "keep-alive")) {
    facts.keep_alive = true;
    return;
  }
  ForEachElement(value, [&](std::string_view option) {
    if (EqualsIgnoreCase(option, "close")) facts.close = true;
    if (EqualsIgnoreCase(option, "keep-alive")) facts.keep_alive = true;
  });
}

// `before` are the headers before this one.
Problem Note(const Header& header, const HeaderList& before, Facts& facts) {
  switch (header.id) {
    case HeaderName::kContentLength:
      if (before.Has(HeaderName::kContentLength)) return "Content-Length is repeated";
      return NoteLength(header.value, facts);
    case HeaderName::kTransferEncoding:
      if (before.Has(HeaderName::kTransferEncoding)) return "Transfer-Encoding is repeated";
      if (!EqualsIgnoreCase(header.value, "chunked")) return "unsupported Transfer-Encoding";
      return nullptr;
    case HeaderName::kHost:
      if (before.Has(HeaderName::kHost)) return "Host is repeated";
      return IsAuthority(header.value) ? nullptr : "invalid Host";
    case HeaderName::kConnection:
      NoteConnection(header.value, facts);
      return nullptr;
    default:
      return nullptr;
  }
}

Problem WrongNameByte(char c, bool first) {
  const bool space = c == ' ' || c == '\t';
  if (c == '\r' || c == '\n') return first ? "bare CR in the head" : "header without a colon";
  if (space) return first ? "folded header line" : "white space before the colon";
  return first && c == ':' ? "empty header name" : "invalid byte in a header name";
}

// Reads one head. Every scan of a line stops at CR at the latest, and a head that is complete() has
// a CR before its blank line, so no scan has to check for the end. No other function may be called
// if complete() is false.
class HeadReader {
 public:
  explicit HeadReader(std::string_view head)
      : at_(head.data()), end_(head.data() + head.size()), complete_(head.ends_with("\r\n\r\n")) {}

  Problem RequestLine(RequestHead& out);
  Problem StatusLine(ResponseHead& out);
  Problem Headers(HeaderList& out, Facts& facts);
  bool complete() const { return complete_; }

 private:
  std::string_view While(uint8_t what) {
    const char* const begin = at_;
    while (Is(*at_, what)) ++at_;
    return {begin, at_};
  }
  std::string_view Name() {
    const char* const begin = at_;
    at_ = FindNameEnd(at_, end_);
    While(kToken);
    return {begin, at_};
  }
  bool Take(std::string_view text) {
    if (!std::string_view(at_, end_).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  Problem Version(int& minor_version);
  std::string_view Value();

  const char* at_;
  const char* const end_;
  const bool complete_;
};

Problem HeadReader::Version(int& minor_version) {
  if (!Take("HTTP/1.")) return "not HTTP/1.0 or HTTP/1.1";
  if (*at_ != '0' && *at_ != '1') return "not HTTP/1.0 or HTTP/1.1";
  minor_version = *at_++ - '0';
  return nullptr;
}

// Up to the end of the line or the first byte that is not allowed, without surrounding space.
std::string_view HeadReader::Value() {
  while (*at_ == ' ' || *at_ == '\t') ++at_;
  const char* const begin = at_;
  at_ = FindControl(at_, end_);
  const char* last = at_;
  while (last != begin && (last[-1] == ' ' || last[-1] == '\t')) --last;
  return {begin, last};
}

Problem CheckTarget(std::string_view method, std::string_view target) {
  if (method == "CONNECT") return "CONNECT is not supported";
  if (target.starts_with('/')) return nullptr;
  if (target == "*") return method == "OPTIONS" ? nullptr : "only OPTIONS may ask for *";
  const size_t scheme = target.find("://");
  if (scheme == target.npos) return "invalid request target";
  const std::string_view name = target.substr(0, scheme);
  if (!EqualsIgnoreCase(name, "http") && !EqualsIgnoreCase(name, "https")) {
    return "invalid request target";
  }
  target.remove_prefix(scheme + 3);
  const std::string_view host = target.substr(0, target.find_first_of("/?"));
  return !host.empty() && IsAuthority(host) ? nullptr : "invalid host in the request target";
}

Problem HeadReader::RequestLine(RequestHead& out) {
  out.method = While(kToken);
  if (out.method.empty() || !Take(" ")) return "invalid request method";
  out.target = While(kTarget);
  if (out.target.empty() || !Take(" ")) return "invalid request target";
  if (Problem problem = CheckTarget(out.method, out.target)) return problem;
  if (Problem problem = Version(out.minor_version)) return problem;
  return Take("\r\n") ? nullptr : "junk after the version";
}

Problem HeadReader::StatusLine(ResponseHead& out) {
  if (Problem problem = Version(out.minor_version)) return problem;
  if (!Take(" ")) return "no space before the status";
  out.status = 0;
  const char* const digits = at_;
  while (at_ - digits < 3 && *at_ >= '0' && *at_ <= '9')
    out.status = out.status * 10 + *at_++ - '0';
  if (at_ - digits != 3 || out.status < 100 || out.status > 599) return "invalid status";
  out.reason = {};
  if (*at_ == ' ') out.reason = Value();
  return Take("\r\n") ? nullptr : "invalid byte after the status";
}

Problem HeadReader::Headers(HeaderList& out, Facts& facts) {
  while (*at_ != '\r') {
    Header header;
    header.name = Name();
    if (header.name.empty() || *at_ != ':') return WrongNameByte(*at_, header.name.empty());
    ++at_;
    header.value = Value();
    if (at_[0] != '\r') return "control byte in a header value";
    if (at_[1] != '\n') return "bare CR in the head";
    at_ += 2;
    header.id = Recognise(header.name);
    if (Problem problem = Note(header, out, facts)) return problem;
    if (!out.Push(header)) return "too many headers";
  }
  if (end_ - at_ == 2) return nullptr;
  return at_[1] == '\n' ? "bytes after the blank line" : "bare CR in the head";
}

Problem CheckFraming(int minor_version, const HeaderList& headers) {
  if (!headers.Has(HeaderName::kTransferEncoding)) return nullptr;
  if (headers.Has(HeaderName::kContentLength)) return "Content-Length beside Transfer-Encoding";
  return minor_version == 0 ? "Transfer-Encoding in HTTP/1.0" : nullptr;
}

Problem CheckExpectations(RequestHead& out) {
  out.expect_continue = false;
  if (!out.headers.Has(HeaderName::kExpect)) return nullptr;
  for (const Header& header : out.headers.all()) {
    if (header.id != HeaderName::kExpect) continue;
    if (!EqualsIgnoreCase(header.value, "100-continue")) return "unsupported expectation";
  }
  out.expect_continue = out.minor_version == 1;  // HTTP/1.0 has no interim answers
  return nullptr;
}

BodyFraming FramingOf(const HeaderList& headers, BodyFraming otherwise) {
  if (headers.Has(HeaderName::kTransferEncoding)) return BodyFraming::kChunked;
  return headers.Has(HeaderName::kContentLength) ? BodyFraming::kLength : otherwise;
}

Problem ReadRequest(std::string_view head, RequestHead& out) {
  HeadReader reader(head);
  if (!reader.complete()) return "the head does not end with a blank line";
  out.headers.Clear();
  Facts facts;
  if (Problem problem = reader.RequestLine(out)) return problem;
  if (Problem problem = reader.Headers(out.headers, facts)) return problem;
  if (Problem problem = CheckFraming(out.minor_version, out.headers)) return problem;
  if (Problem problem = CheckExpectations(out)) return problem;
  if (out.minor_version == 1 && !out.headers.Has(HeaderName::kHost)) return "Host is missing";
  out.framing = FramingOf(out.headers, BodyFraming::kNone);
  out.content_length = facts.content_length;
  out.keep_alive = facts.KeepsAlive(out.minor_version);
  return nullptr;
}

Problem ReadResponse(std::string_view head, bool to_head_request, ResponseHead& out) {
  HeadReader reader(head);
  if (!reader.complete()) return "the head does not end with a blank line";
  out.headers.Clear();
  Facts facts;
  if (Problem problem = reader.StatusLine(out)) return problem;
  if (Problem problem = reader.Headers(out.headers, facts)) return problem;
  if (Problem problem = CheckFraming(out.minor_version, out.headers)) return problem;
  const bool bodiless =
      to_head_request || out.status < 200 || out.status == 204 || out.status == 304;
  out.framing = bodiless ? BodyFraming::kNone : FramingOf(out.headers, BodyFraming::kUntilClose);
  out.content_length = bodiless ? 0 : facts.content_length;
  out.keep_alive = facts.KeepsAlive(out.minor_version) && out.framing != BodyFraming::kUntilClose;
  return nullptr;
}

}  // namespace

Result<size_t> HeadFinder::Find(std::string_view in) {
  while (scanned_ < in.size()) {
    const void* found = std::memchr(in.data() + scanned_, '\n', in.size() - scanned_);
    if (found == nullptr) {
      scanned_ = in.size();
      return 0;
    }
    const size_t lf = static_cast<const char*>(found) - in.data();
    if (lf == 0 || in[lf - 1] != '\r') return Fail(Blame::kCaller, "bare LF in the head");
    scanned_ = lf + 1;
    if (lf == 1 || in[lf - 2] == '\n') {
      scanned_ = 0;
      return lf + 1;
    }
  }
  return 0;
}

Result<void> ParseRequestHead(std::string_view head, RequestHead& out) {
  if (Problem problem = ReadRequest(head, out)) return Fail(Blame::kCaller, "{}", problem);
  return {};
}

Result<void> ParseResponseHead(std::string_view head, bool to_head_request, ResponseHead& out) {
  if (Problem problem = ReadResponse(head, to_head_request, out)) {
    return Fail(Blame::kPeer, "{}", problem);
  }
  return {};
}

}  // namespace fathom
