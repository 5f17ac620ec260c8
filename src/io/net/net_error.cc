#include "io/net/net_error.h"

#include <cerrno>
#include <cstring>

namespace fathom {

std::string_view Name(NetCause cause) {
  switch (cause) {
    case NetCause::kOther:
      return "other";
    case NetCause::kBadName:
      return "bad_name";
    case NetCause::kNoSuchName:
      return "no_such_name";
    case NetCause::kNameTimeout:
      return "name_timeout";
    case NetCause::kNameServer:
      return "name_server";
    case NetCause::kRefused:
      return "refused";
    case NetCause::kUnreachable:
      return "unreachable";
    case NetCause::kTimeout:
      return "timeout";
    case NetCause::kTls:
      return "tls";
    case NetCause::kBroken:
      return "broken";
    case NetCause::kBadAnswer:
      return "bad_answer";
    case NetCause::kCancelled:
      return "cancelled";
    case NetCause::kNoResources:
      return "no_resources";
  }
  return "other";
}

NetCause CauseOfErrno(int error) {
  switch (error) {
    case ECONNREFUSED:
      return NetCause::kRefused;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
      return NetCause::kUnreachable;
    case ETIMEDOUT:
      return NetCause::kTimeout;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case EAGAIN:  // no free local port
      return NetCause::kNoResources;
    default:
      return NetCause::kBroken;
  }
}

std::string DescribeErrno(int error) {
  return error == ECONNREFUSED ? "connection refused" : std::strerror(error);
}

}  // namespace fathom
