#include "router/replicas/replica_spec.h"

#include <optional>
#include <utility>

#include "base/text.h"
#include "codec/url.h"
#include "io/net/address.h"
#include "io/net/host_name.h"

namespace fathom {
namespace {

constexpr std::string_view kForms =
    "nats://HOST:PORT, tls://HOST:PORT (NATS with TLS), zmq://HOST:PORT,..., "
    "dns+zmq://NAME:PORT,... or k8s+zmq://NAMESPACE/SERVICE:PORT";
constexpr uint16_t kNatsPort = 4222;

struct SpecPart {
  std::string_view scheme;  // of this part, or of the one before
  std::string_view rest;
};

constexpr std::string_view kSchemeLetters = "abcdefghijklmnopqrstuvwxyz0123456789+.-";

// Of a text without credentials.
Result<std::vector<SpecPart>> PartsOf(std::string_view text) {
  std::vector<SpecPart> parts;
  std::string_view scheme;
  for (const std::string_view piece : SplitAny(text, ", ")) {
    const size_t colon = piece.find("://");
    if (colon != std::string_view::npos) scheme = piece.substr(0, colon);
    if (scheme.empty() || scheme.find_first_not_of(kSchemeLetters) != std::string_view::npos) {
      return Fail(Blame::kCaller, "'{}' has no scheme; write {}", piece, kForms);
    }
    parts.push_back({scheme, colon == std::string_view::npos ? piece : piece.substr(colon + 3)});
  }
  if (parts.empty()) return Fail(Blame::kCaller, "no address; write {}", kForms);
  return parts;
}

bool IsHost(const std::string& host) {
  return Address::Numeric(host, 0).has_value() || IsHostName(host);
}

// `usual` is the port if the text has none.
Result<std::pair<std::string, uint16_t>> PlaceOf(std::string_view text, uint16_t usual) {
  const size_t bracket = text.rfind(']');
  const bool has_port =
      text.find(':', bracket == std::string_view::npos ? 0 : bracket) != std::string_view::npos;
  const std::string whole =
      has_port || usual == 0 ? std::string(text) : fmt::format("{}:{}", text, usual);
  TRY(auto place, SplitHostPort(whole));
  if (place.second == 0 || !IsHost(place.first)) {
    return Fail(Blame::kCaller, "'{}' is not HOST:PORT with a port from 1 to 65535", text);
  }
  return place;
}

std::string InBrackets(const std::string& host) {
  return host.find(':') == std::string::npos ? host : fmt::format("[{}]", host);
}

// --- NATS ------------------------------------------------------------------------------------

struct Login {
  std::string user;
  std::string password;
  std::string token;
  friend bool operator==(const Login&, const Login&) = default;
};

// As in NATS' own URLs, a name without a password is a token.
Login LoginOf(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return {.token = PercentDecode(text)};
  return {.user = PercentDecode(text.substr(0, colon)),
          .password = PercentDecode(text.substr(colon + 1))};
}

Result<ReplicaSpec> ParseNats(const std::vector<SpecPart>& parts) {
  NatsReplicas nats;
  std::optional<Login> login;
  for (const SpecPart& part : parts) {
    if (part.scheme != "nats" && part.scheme != "tls") {
      return Fail(Blame::kCaller, "'{}://' beside nats://; write one kind of address: {}",
                  part.scheme, kForms);
    }
    nats.tls |= part.scheme == "tls";
    const size_t at = part.rest.rfind('@');
    std::string_view place = at == std::string_view::npos ? part.rest : part.rest.substr(at + 1);
    if (place.ends_with('/')) place.remove_suffix(1);
    if (at != std::string_view::npos) {
      const Login found = LoginOf(part.rest.substr(0, at));
      if (login && *login != found) {
        return Fail(Blame::kCaller,
                    "'{}': its credentials differ from those of another server; write the same "
                    "ones, or write them once",
                    place);
      }
      login = found;
    }
    TRY(const auto found, PlaceOf(place, kNatsPort));
    nats.urls.push_back(fmt::format("nats://{}:{}", InBrackets(found.first), found.second));
  }
  if (login) {
    nats.user = std::move(login->user);
    nats.password = std::move(login->password);
    nats.token = std::move(login->token);
  }
  return nats;
}

// --- directly --------------------------------------------------------------------------------

std::optional<MeshFinding> FindingOf(std::string_view scheme) {
  if (scheme == "zmq") return MeshFinding::kListed;
  if (scheme == "dns+zmq") return MeshFinding::kDns;
  if (scheme == "k8s+zmq") return MeshFinding::kKubernetes;
  return std::nullopt;
}

Result<MeshPlace> ServiceOf(std::string_view text) {
  const size_t slash = text.find('/');
  const std::string ns(text.substr(0, slash));
  const auto service = slash == std::string_view::npos ? Fail(Blame::kCaller, "no Service")
                                                       : PlaceOf(text.substr(slash + 1), 0);
  if (!service || !IsHostName(ns) || !IsHostName(service->first)) {
    return Fail(
        Blame::kCaller,
        "'k8s+zmq://{}' is not k8s+zmq://NAMESPACE/SERVICE:PORT with a port from 1 to 65535", text);
  }
  return MeshPlace{service->first, service->second, MeshFinding::kKubernetes, ns};
}

Result<MeshPlace> MeshPlaceOf(std::string_view text, MeshFinding finding) {
  if (finding == MeshFinding::kKubernetes) return ServiceOf(text);
  TRY(const auto found, PlaceOf(text, 0));
  if (finding == MeshFinding::kDns && Address::Numeric(found.first, 0)) {
    return Fail(Blame::kCaller, "'dns+zmq://{}' has an address, not a name; write zmq://{}", text,
                text);
  }
  return MeshPlace{found.first, found.second, finding};
}

Result<ReplicaSpec> ParseMesh(const std::vector<SpecPart>& parts) {
  MeshReplicas mesh;
  for (const SpecPart& part : parts) {
    const auto finding = FindingOf(part.scheme);
    if (!finding) {
      return Fail(Blame::kCaller, "'{}://' beside zmq://; write one kind of address: {}",
                  part.scheme, kForms);
    }
    TRY(MeshPlace place, MeshPlaceOf(part.rest, *finding));
    mesh.places.push_back(std::move(place));
  }
  return mesh;
}

Result<ReplicaSpec> ParseSpec(std::string_view text) {
  TRY(const std::vector<SpecPart> parts, PartsOf(text));
  const std::string_view scheme = parts.front().scheme;
  if (scheme == "nats" || scheme == "tls") return ParseNats(parts);
  if (FindingOf(scheme)) return ParseMesh(parts);
  return Fail(Blame::kCaller, "'{}://' is not known; write {}", scheme, kForms);
}

}  // namespace

std::string MeshPlace::ToString() const {
  return fmt::format("{}{}{}:{}", network_namespace, network_namespace.empty() ? "" : "/",
                     InBrackets(host), port);
}

// A password with a comma or an '@' is cut anywhere, so a text with credentials is not repeated.
Result<ReplicaSpec> ParseReplicaSpec(std::string_view text) {
  auto spec = ParseSpec(text);
  if (spec || text.find('@') == std::string_view::npos) return spec;
  return Fail(Blame::kCaller,
              "an address that is not valid, or two servers with different credentials; write "
              "nats://USER:PASSWORD@HOST:PORT[,HOST:PORT], with ',' '@' and ' ' in credentials as "
              "%2C %40 and %20");
}

}  // namespace fathom
