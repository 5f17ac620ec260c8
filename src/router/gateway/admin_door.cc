#include "router/gateway/admin_door.h"

#include "base/text.h"
#include "codec/request_target.h"
#include "io/net/address.h"
#include "router/gateway/openai_error.h"

namespace fathom {
namespace {

// The host and port that the client meant: those of an absolute target, else of Host.
std::string_view AuthorityOf(const RequestHead& head) {
  const RequestTarget target = RequestTarget::Of(head.target);
  if (!target.authority.empty()) return target.authority;
  const Header* const host = head.headers.Find(HeaderName::kHost);
  return host != nullptr ? host->value : std::string_view();
}

std::string_view WithoutPort(std::string_view authority) {
  if (authority.starts_with('[')) {
    const size_t end = authority.find(']');
    return end == authority.npos ? std::string_view() : authority.substr(1, end - 1);
  }
  return authority.substr(0, authority.find(':'));
}

// Names below localhost are not accepted: some resolvers ask DNS for them.
bool IsLoopbackName(std::string_view authority) {
  std::string_view host = WithoutPort(authority);
  if (host.ends_with('.')) host.remove_suffix(1);
  if (EqualsIgnoreCase(host, "localhost")) return true;
  const auto address = Address::Numeric(host, 0);
  return address && address->loopback();
}

// "http://host:port", as browsers write it: without a path, and the port only where Host has it.
bool IsOwnOrigin(std::string_view origin, std::string_view authority) {
  const size_t scheme = origin.find("://");
  return scheme != origin.npos && !authority.empty() &&
         EqualsIgnoreCase(origin.substr(scheme + 3), authority);
}

bool HasForeignOrigin(const RequestHead& head) {
  const std::string_view authority = AuthorityOf(head);
  for (const Header& header : head.headers.all()) {
    if (!EqualsIgnoreCase(header.name, "origin")) continue;
    if (!IsOwnOrigin(header.value, authority)) return true;
  }
  return false;
}

bool IsJson(const RequestHead& head) {
  const Header* const type = head.headers.Find(HeaderName::kContentType);
  if (type == nullptr) return false;
  return EqualsIgnoreCase(Trim(type->value.substr(0, type->value.find(';'))), "application/json");
}

// Browsers send a POST without asking the server first, also one without a body.
bool MustBeJson(const RequestHead& head) {
  const bool put = head.method == "PUT" && head.framing != BodyFraming::kNone;
  return head.method == "POST" || put;
}

}  // namespace

bool AdminDoor::Guards(std::string_view path) const {
  if (rules_.elsewhere) return false;
  return path == "/workers" || path.starts_with("/workers/") || path.starts_with("/debug/");
}

AdminDoor::Problem AdminDoor::ForeignPart(const RequestHead& head) const {
  if (HasForeignOrigin(head)) return Problem::kForeignOrigin;
  if (!rules_.loopback || keys_.required()) return Problem::kNone;
  return IsLoopbackName(AuthorityOf(head)) ? Problem::kNone : Problem::kForeignHost;
}

AdminDoor::Problem AdminDoor::ProblemOf(const RequestHead& head) const {
  if (const Problem foreign = ForeignPart(head); foreign != Problem::kNone) return foreign;
  if (rules_.closed) return Problem::kClosed;
  if (!keys_.Admits(head)) return Problem::kNoKey;
  return MustBeJson(head) && !IsJson(head) ? Problem::kNotJson : Problem::kNone;
}

bool AdminDoor::ShowsAll(const RequestHead& head) const {
  return !rules_.elsewhere && ProblemOf(head) == Problem::kNone;
}

std::optional<Answer> AdminDoor::Refuse(const RequestHead& head) const {
  switch (ProblemOf(head)) {
    case Problem::kNone:
      return std::nullopt;
    case Problem::kForeignOrigin:
      return OpenAiError(403, "foreign_origin",
                         "the Origin of this request is not the router itself; pages of other "
                         "origins must not use the admin routes");
    case Problem::kForeignHost:
      return OpenAiError(403, "foreign_host",
                         "without an admin key these routes answer only to the names localhost, "
                         "127.0.0.1 and [::1]; use one of them, or set --admin-key");
    case Problem::kClosed:
      return OpenAiError(403, "admin_closed",
                         "clients need API keys here and there is no admin key: set --admin-key, "
                         "or --admin-listen on loopback, or --open-admin");
    case Problem::kNoKey:
      return OpenAiError(401, "invalid_admin_key", "the admin key is required in Authorization");
    case Problem::kNotJson:
      return OpenAiError(415, "unsupported_media_type",
                         "send JSON, with the header content-type: application/json");
  }
  std::unreachable();
}

}  // namespace fathom
