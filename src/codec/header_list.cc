#include "codec/header_list.h"

namespace fathom {
namespace {

bool IsHopByHopName(HeaderName id) {
  switch (id) {
    case HeaderName::kConnection:
    case HeaderName::kKeepAlive:
    case HeaderName::kProxyAuthenticate:
    case HeaderName::kProxyAuthorization:
    case HeaderName::kProxyConnection:
    case HeaderName::kTe:
    case HeaderName::kTrailer:
    case HeaderName::kTransferEncoding:
    case HeaderName::kUpgrade:
      return true;
    default:
      return false;
  }
}

}  // namespace

const Header* HeaderList::Find(HeaderName id) const {
  if (!Has(id)) return nullptr;
  for (const Header& header : all()) {
    if (header.id == id) return &header;
  }
  return nullptr;
}

const Header* HeaderList::Find(std::string_view name) const {
  for (const Header& header : all()) {
    if (EqualsIgnoreCase(header.name, name)) return &header;
  }
  return nullptr;
}

bool IsHopByHop(const Header& header, const HeaderList& headers) {
  if (IsHopByHopName(header.id)) return true;
  if (!headers.Has(HeaderName::kConnection)) return false;
  if (header.id == HeaderName::kContentLength || header.id == HeaderName::kHost) return false;
  bool listed = false;
  for (const Header& other : headers.all()) {
    if (other.id != HeaderName::kConnection) continue;
    ForEachElement(other.value, [&](std::string_view option) {
      listed = listed || EqualsIgnoreCase(option, header.name);
    });
  }
  return listed;
}

}  // namespace fathom
