// TLS on top of a socket's descriptor. Only this folder uses OpenSSL.
#pragma once

#include <sys/uio.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/net/loop.h"

struct ssl_ctx_st;
struct ssl_st;

namespace fathom {

class TlsSession {
 public:
  struct Step {
    bool again = false;       // nothing done; wait for the descriptor and repeat
    bool want_write = false;  // wait for writability instead of readability
    IoStatus status = IoStatus::kOk;
    size_t bytes = 0;
  };

  explicit TlsSession(ssl_st* session) : session_(session) {}
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  Step Handshake();
  Step Read(std::span<char> into);
  Step Write(std::span<const iovec> parts);
  void Shutdown();
  // Bytes have been taken from the descriptor that Read() has not returned yet.
  bool pending() const;

  // The last failure, as OpenSSL words it.
  const std::string& problem() const { return problem_; }

 private:
  Step Outcome(int result);

  ssl_st* session_;
  std::string problem_;
  std::string unsent_;  // a record that must be passed to SSL_write again unchanged
  bool broken_ = false;
};

// Immutable, shared by all loops; replaced as a whole when certificates are reloaded.
class TlsServerContext {
 public:
  static Result<std::shared_ptr<const TlsServerContext>> Load(const std::string& certificate_file,
                                                              const std::string& key_file);
  explicit TlsServerContext(ssl_ctx_st* context) : context_(context) {}
  ~TlsServerContext();
  TlsServerContext(const TlsServerContext&) = delete;
  TlsServerContext& operator=(const TlsServerContext&) = delete;

  std::unique_ptr<TlsSession> Accept(int fd) const;

 private:
  ssl_ctx_st* context_;
};

// The authorities that a client trusts and the client's own certificate, all as PEM text.
struct TlsClientPem {
  std::string authorities;  // empty: the system's store
  std::string certificate;  // the client's own first, then its chain; empty: none is presented
  std::string key;          // of that certificate; never part of an error
};

// Verifies the server: its chain (against `ca_file`, or the system's store when that is empty) and
// its name.
class TlsClientContext {
 public:
  static Result<std::shared_ptr<const TlsClientContext>> Create(const std::string& ca_file);
  static Result<std::shared_ptr<const TlsClientContext>> FromPem(const TlsClientPem& pem);
  explicit TlsClientContext(ssl_ctx_st* context) : context_(context) {}
  ~TlsClientContext();
  TlsClientContext(const TlsClientContext&) = delete;
  TlsClientContext& operator=(const TlsClientContext&) = delete;

  std::unique_ptr<TlsSession> Connect(int fd, const std::string& server_name) const;

 private:
  ssl_ctx_st* context_;
};

}  // namespace fathom
