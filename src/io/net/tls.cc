#include "io/net/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>

#include "base/check.h"

namespace fathom {
namespace {

constexpr size_t kRecord = 16 * 1024;

std::string LastProblem() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  if (code == 0) return "unexpected end of connection";
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "unknown TLS error";
}

int ChooseHttp11(SSL*, const unsigned char** out, unsigned char* out_size,
                 const unsigned char* offered, unsigned int offered_size, void*) {
  static constexpr unsigned char kHttp11[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  unsigned char* chosen = nullptr;
  const int found =
      SSL_select_next_proto(&chosen, out_size, kHttp11, sizeof(kHttp11), offered, offered_size);
  if (found != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_NOACK;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

SSL_CTX* NewClientContext() {
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  CHECK(context != nullptr);
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // A read would have to write, and a write to read, while another coroutine does.
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  ERR_clear_error();
  return context;
}

struct FreePem {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using PemText = std::unique_ptr<BIO, FreePem>;
using Certificate = std::unique_ptr<X509, FreePem>;

PemText OpenPem(const std::string& text) {
  PemText bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  CHECK(bio != nullptr);
  return bio;
}

// Without it OpenSSL would prompt on the terminal for a passphrase.
int NoPassphrase(char*, int, int, void*) { return 0; }

Certificate NextCertificate(BIO* pem) {
  return Certificate(PEM_read_bio_X509(pem, nullptr, &NoPassphrase, nullptr));
}

Result<void> TrustAuthorities(SSL_CTX* context, const std::string& text) {
  const PemText pem = OpenPem(text);
  size_t count = 0;
  while (const Certificate authority = NextCertificate(pem.get())) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get());
    ++count;
  }
  if (count == 0) {
    return Fail(Blame::kCaller, "cannot use the CA certificates: {}", LastProblem());
  }
  ERR_clear_error();
  return {};
}

Result<void> ShowCertificate(SSL_CTX* context, const std::string& text) {
  const PemText pem = OpenPem(text);
  const Certificate own = NextCertificate(pem.get());
  if (!own || SSL_CTX_use_certificate(context, own.get()) != 1) {
    return Fail(Blame::kCaller, "cannot use the client's certificate: {}", LastProblem());
  }
  while (const Certificate link = NextCertificate(pem.get())) {
    SSL_CTX_add1_chain_cert(context, link.get());
  }
  ERR_clear_error();
  return {};
}

Result<void> UseKey(SSL_CTX* context, const std::string& text) {
  const PemText pem = OpenPem(text);
  const std::unique_ptr<EVP_PKEY, FreePem> key(
      PEM_read_bio_PrivateKey(pem.get(), nullptr, &NoPassphrase, nullptr));
  if (!key || SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return Fail(Blame::kCaller, "cannot use the client's key with its certificate: {}",
                LastProblem());
  }
  return {};
}

}  // namespace

TlsSession::~TlsSession() { SSL_free(session_); }

TlsSession::Step TlsSession::Outcome(int result) {
  switch (SSL_get_error(session_, result)) {
    case SSL_ERROR_WANT_READ:
      return {.again = true};
    case SSL_ERROR_WANT_WRITE:
      return {.again = true, .want_write = true};
    case SSL_ERROR_ZERO_RETURN:
      return {.status = IoStatus::kEof};
    default:
      broken_ = true;
      problem_ = LastProblem();
      if (const long verdict = SSL_get_verify_result(session_); verdict != X509_V_OK) {
        problem_ = X509_verify_cert_error_string(verdict);
      }
      return {.status = IoStatus::kError};
  }
}

TlsSession::Step TlsSession::Handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(session_);
  return result == 1 ? Step{} : Outcome(result);
}

TlsSession::Step TlsSession::Read(std::span<char> into) {
  ERR_clear_error();
  size_t bytes = 0;
  const int result = SSL_read_ex(session_, into.data(), into.size(), &bytes);
  return result == 1 ? Step{.bytes = bytes} : Outcome(result);
}

TlsSession::Step TlsSession::Write(std::span<const iovec> parts) {
  // Small parts share a record. A record that could not be sent is passed again unchanged, as
  // OpenSSL requires.
  if (unsent_.empty()) {
    for (const iovec& part : parts) {
      const size_t room = kRecord - unsent_.size();
      unsent_.append(static_cast<const char*>(part.iov_base), std::min(room, part.iov_len));
      if (unsent_.size() == kRecord) break;
    }
  }
  ERR_clear_error();
  size_t bytes = 0;
  const int result = SSL_write_ex(session_, unsent_.data(), unsent_.size(), &bytes);
  if (result != 1) return Outcome(result);
  CHECK(bytes == unsent_.size());
  unsent_.clear();
  return {.bytes = bytes};
}

bool TlsSession::pending() const { return SSL_has_pending(session_) != 0; }

void TlsSession::Shutdown() {
  if (broken_ || SSL_in_init(session_) != 0) return;
  ERR_clear_error();
  SSL_shutdown(session_);
  ERR_clear_error();
}

Result<std::shared_ptr<const TlsServerContext>> TlsServerContext::Load(
    const std::string& certificate_file, const std::string& key_file) {
  SSL_CTX* const raw = SSL_CTX_new(TLS_server_method());
  CHECK(raw != nullptr);
  auto context = std::make_shared<const TlsServerContext>(raw);
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_alpn_select_cb(raw, &ChooseHttp11, nullptr);
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(raw, certificate_file.c_str()) != 1) {
    return Fail(Blame::kCaller, "cannot use certificate file {}: {}", certificate_file,
                LastProblem());
  }
  if (SSL_CTX_use_PrivateKey_file(raw, key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    return Fail(Blame::kCaller, "cannot use key file {} with certificate {}: {}", key_file,
                certificate_file, LastProblem());
  }
  if (SSL_CTX_check_private_key(raw) != 1) {
    return Fail(Blame::kCaller, "key file {} does not match certificate {}", key_file,
                certificate_file);
  }
  return context;
}

TlsServerContext::~TlsServerContext() { SSL_CTX_free(context_); }

std::unique_ptr<TlsSession> TlsServerContext::Accept(int fd) const {
  SSL* const session = SSL_new(context_);
  CHECK(session != nullptr);
  SSL_set_fd(session, fd);
  SSL_set_accept_state(session);
  return std::make_unique<TlsSession>(session);
}

Result<std::shared_ptr<const TlsClientContext>> TlsClientContext::Create(
    const std::string& ca_file) {
  SSL_CTX* const raw = NewClientContext();
  auto context = std::make_shared<const TlsClientContext>(raw);
  if (ca_file.empty()) {
    SSL_CTX_set_default_verify_paths(raw);
  } else if (SSL_CTX_load_verify_locations(raw, ca_file.c_str(), nullptr) != 1) {
    return Fail(Blame::kCaller, "cannot use CA file {}: {}", ca_file, LastProblem());
  }
  return context;
}

Result<std::shared_ptr<const TlsClientContext>> TlsClientContext::FromPem(const TlsClientPem& pem) {
  SSL_CTX* const raw = NewClientContext();
  auto context = std::make_shared<const TlsClientContext>(raw);
  if (pem.authorities.empty()) {
    SSL_CTX_set_default_verify_paths(raw);
  } else {
    TRY_VOID(TrustAuthorities(raw, pem.authorities));
  }
  if (!pem.certificate.empty()) {
    TRY_VOID(ShowCertificate(raw, pem.certificate));
    TRY_VOID(UseKey(raw, pem.key));
  }
  return context;
}

TlsClientContext::~TlsClientContext() { SSL_CTX_free(context_); }

std::unique_ptr<TlsSession> TlsClientContext::Connect(int fd,
                                                      const std::string& server_name) const {
  SSL* const session = SSL_new(context_);
  CHECK(session != nullptr);
  SSL_set_fd(session, fd);
  SSL_set_connect_state(session);
  in6_addr address;
  const bool numeric = inet_pton(AF_INET, server_name.c_str(), &address) == 1 ||
                       inet_pton(AF_INET6, server_name.c_str(), &address) == 1;
  if (numeric) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), server_name.c_str());
  } else {
    SSL_set1_host(session, server_name.c_str());
    SSL_set_tlsext_host_name(session, server_name.c_str());
  }
  return std::make_unique<TlsSession>(session);
}

}  // namespace fathom
