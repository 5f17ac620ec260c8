// TLS on top of a socket's descriptor. Only this room sees OpenSSL.
#pragma once

#include <sys/uio.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/loop.h"

struct ssl_ctx_st;
struct ssl_st;

namespace fathom {

class TlsSession {
 public:
  struct Step {
    bool again = false;       // nothing done; wait for the descriptor and repeat
    bool want_write = false;  // for writability, that is, rather than readability
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
  // Bytes have been taken from the descriptor that nobody has read yet.
  bool pending() const;

  // The last failure, in OpenSSL's words.
  const std::string& problem() const { return problem_; }

 private:
  Step Outcome(int result);

  ssl_st* session_;
  std::string problem_;
  std::string unsent_;  // a record that must be offered again exactly as it was
  bool broken_ = false;
};

// Immutable once made, shared by all loops; replaced as a whole when certificates are reloaded.
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

// Whom a client trusts, and as whom it comes: all as PEM text.
struct TlsClientPem {
  std::string authorities;  // empty: the system's store
  std::string certificate;  // its own first, then its chain; empty: it shows none
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
