#include "io/nats/nats_hello.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "base/version.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "io/nats/nkey.h"
#include "io/net/address.h"

namespace fathom {
namespace {

bool IsTrue(const Json& info, std::string_view name) {
  const Json* const found = info.Find(name);
  return found != nullptr && found->boolean() != nullptr && *found->boolean();
}

// Errors name the file.
Result<std::string> ReadNamed(const std::string& file) {
  auto text = ReadFile(file);
  if (!text) return std::unexpected(std::move(text).error().In(file));
  if (Trim(*text).empty()) return Fail(Blame::kCaller, "{}: it is empty", file);
  return text;
}

Result<std::string> ReadIfNamed(const std::string& file) {
  return file.empty() ? Result<std::string>(std::string()) : ReadNamed(file);
}

// As in URLs, and without padding.
std::string SignatureText(std::string_view bytes) {
  std::string text = EncodeBase64(bytes);
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  text.resize(text.find_last_not_of('=') + 1);
  return text;
}

// The line after "-----BEGIN NATS USER JWT-----".
std::optional<std::string_view> JwtIn(std::string_view text) {
  bool next = false;
  for (const std::string_view line : SplitAny(text, "\r\n")) {
    const std::string_view trimmed = Trim(line);
    if (next && !trimmed.empty()) return trimmed;
    if (trimmed.find("BEGIN NATS USER JWT") != std::string_view::npos) next = true;
  }
  return std::nullopt;
}

Result<void> Sign(std::string_view seed, const NatsInfo& info, JsonWriter& to) {
  if (info.nonce.empty()) {
    return Fail(Blame::kPeer, "the NATS server asks for no signature: it has no users with keys");
  }
  TRY(const std::string signature, NkeySignature(seed, info.nonce));
  to.Key("sig").String(SignatureText(signature));
  return {};
}

Result<void> LogInWithNkey(std::string_view seed, const NatsInfo& info, JsonWriter& to) {
  TRY(const std::string user, NkeyUserOf(seed));
  to.Key("nkey").String(user);
  return Sign(seed, info, to);
}

Result<void> LogInWithJwt(std::string_view text, const NatsInfo& info, JsonWriter& to) {
  const auto jwt = JwtIn(text);
  if (!jwt) return Fail(Blame::kCaller, "no user's JWT in it; nsc writes such a file");
  to.Key("jwt").String(*jwt);
  return Sign(text, info, to);
}

template <class LogIn>
Result<void> LogInWithFile(const std::string& file, LogIn log_in, const NatsInfo& info,
                           JsonWriter& to) {
  TRY(const std::string text, ReadNamed(file));
  auto done = log_in(text, info, to);
  if (!done) return std::unexpected(std::move(done).error().In(file));
  return {};
}

Result<void> LogIn(const NatsOptions& options, const NatsInfo& info, JsonWriter& to) {
  if (!options.user.empty()) {
    to.Key("user").String(options.user).Key("pass").String(options.password);
    return {};
  }
  if (!options.token.empty()) {
    to.Key("auth_token").String(options.token);
    return {};
  }
  if (!options.nkey_seed_file.empty()) {
    return LogInWithFile(options.nkey_seed_file, &LogInWithNkey, info, to);
  }
  if (!options.credentials_file.empty()) {
    return LogInWithFile(options.credentials_file, &LogInWithJwt, info, to);
  }
  return {};
}

}  // namespace

Result<NatsInfo> NatsInfo::Parse(std::string_view json) {
  const auto parsed = Json::Parse(json);
  if (!parsed || parsed->object() == nullptr) {
    return Fail(Blame::kPeer, "what the server says about itself is not JSON");
  }
  NatsInfo info;
  info.tls_required = IsTrue(*parsed, "tls_required");
  info.tls_available = IsTrue(*parsed, "tls_available");
  if (const Json* const nonce = parsed->Find("nonce"); nonce != nullptr && nonce->string()) {
    info.nonce = *nonce->string();
  }
  if (const Json* const most = parsed->Find("max_payload"); most != nullptr) {
    info.max_payload = most->unsigned_integer().value_or(info.max_payload);
  }
  return info;
}

Result<NatsPlace> NatsPlace::Parse(std::string_view url) {
  const size_t scheme = url.find("://");
  const bool tls = url.starts_with("tls://");
  if (scheme == std::string_view::npos || (!tls && !url.starts_with("nats://"))) {
    return Fail(Blame::kCaller, "it is not nats://HOST:PORT");
  }
  TRY(auto place, SplitHostPort(url.substr(scheme + 3)));
  return NatsPlace{.host = std::move(place.first), .port = place.second, .tls = tls};
}

Result<std::string> NatsHello(const NatsOptions& options, const NatsInfo& info,
                              const std::vector<std::string>& subjects) {
  JsonWriter w;
  w.BeginObject().Key("verbose").Bool(false).Key("pedantic").Bool(false).Key("echo").Bool(false);
  w.Key("lang").String("cpp").Key("version").String(kVersion).Key("name").String(options.name);
  w.Key("protocol").Int(1).Key("headers").Bool(false);
  TRY_VOID(LogIn(options, info, w));
  w.EndObject();
  std::string hello = fmt::format("CONNECT {}\r\n", w.text());
  for (size_t i = 0; i < subjects.size(); ++i) {
    hello += fmt::format("SUB {} {}\r\n", subjects[i], i + 1);
  }
  hello += "PING\r\n";
  return hello;
}

Result<std::shared_ptr<const TlsClientContext>> NatsTls(const NatsOptions& options) {
  TlsClientPem pem;
  TRY(pem.authorities, ReadIfNamed(options.ca_file));
  TRY(pem.certificate, ReadIfNamed(options.certificate_file));
  TRY(pem.key, ReadIfNamed(options.key_file));
  return TlsClientContext::FromPem(pem);
}

bool IsNatsSubject(std::string_view text) {
  constexpr char kBlank = ' ';
  return !text.empty() &&
         std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) <= kBlank; });
}

}  // namespace fathom
