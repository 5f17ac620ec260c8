#include "io/nats/nats_connection.h"

#include <nats/nats.h>

#include <chrono>
#include <utility>

#include "base/file.h"
#include "base/peer_text.h"
#include "io/nats/nkey.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
// libnats 3.4 does not free the message that it is receiving when its connection closes.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:natsBuf_Create\n"; }
#endif
#endif

namespace fathom {
namespace {

// A subscription's messages that wait for its thread.
constexpr int kMostWaiting = 65536;
constexpr int kMostWaitingBytes = 16 << 20;

using OptionsPtr = std::unique_ptr<natsOptions, decltype(&natsOptions_Destroy)>;

int64_t Milliseconds(Duration time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

// libnats' text begins with a place in its source: "(conn.c:733): ".
std::string ProblemOf(natsStatus status, const char* text) {
  if (status == NATS_NO_SERVER) return "no NATS server listens there";
  if (status == NATS_TIMEOUT) return "the NATS server does not answer";
  std::string_view shown = text == nullptr ? "" : text;
  const size_t place = shown.starts_with('(') ? shown.find("): ") : std::string_view::npos;
  if (place != std::string_view::npos) shown.remove_prefix(place + 3);
  return Shown(shown.empty() ? std::string_view(natsStatus_GetText(status)) : shown);
}

// libnats keeps the text of a thread's last error.
Result<void> Checked(natsStatus status) {
  if (status == NATS_OK) return {};
  return Fail(Blame::kPeer, "{}", ProblemOf(status, nats_GetLastError(nullptr)));
}

// Without one, libnats writes to stderr.
void IgnoreError(natsConnection*, natsSubscription*, natsStatus, void*) {}

Result<void> SetServers(natsOptions* to, const NatsOptions& options) {
  std::vector<const char*> urls;
  for (const std::string& url : options.urls) urls.push_back(url.c_str());
  return Checked(natsOptions_SetServers(to, urls.data(), static_cast<int>(urls.size())));
}

Result<void> SetNkey(natsOptions* to, const std::string& file) {
  const auto text = ReadFile(file);
  if (!text) return std::unexpected(Error(text.error()).In(file));
  auto user = NkeyUserOf(*text);
  if (!user) return std::unexpected(std::move(user).error().In(file));
  return Checked(natsOptions_SetNKeyFromSeed(to, user->c_str(), file.c_str()));
}

Result<void> SetCredentials(natsOptions* to, const NatsOptions& options) {
  if (!options.user.empty()) {
    return Checked(natsOptions_SetUserInfo(to, options.user.c_str(), options.password.c_str()));
  }
  if (!options.token.empty()) return Checked(natsOptions_SetToken(to, options.token.c_str()));
  if (!options.nkey_seed_file.empty()) return SetNkey(to, options.nkey_seed_file);
  if (!options.credentials_file.empty()) {
    return Checked(
        natsOptions_SetUserCredentialsFromFiles(to, options.credentials_file.c_str(), nullptr));
  }
  return {};
}

Result<void> SetTls(natsOptions* to, const NatsOptions& options) {
  if (!options.tls) return {};
  TRY_VOID(Checked(natsOptions_SetSecure(to, true)));
  if (!options.ca_file.empty()) {
    auto loaded = Checked(natsOptions_LoadCATrustedCertificates(to, options.ca_file.c_str()));
    if (!loaded) return std::unexpected(std::move(loaded).error().In(options.ca_file));
  }
  if (options.certificate_file.empty()) return {};
  auto loaded = Checked(natsOptions_LoadCertificatesChain(to, options.certificate_file.c_str(),
                                                          options.key_file.c_str()));
  if (!loaded) return std::unexpected(std::move(loaded).error().In(options.certificate_file));
  return {};
}

Result<OptionsPtr> MakeOptions(const NatsOptions& options) {
  natsOptions* made = nullptr;
  TRY_VOID(Checked(natsOptions_Create(&made)));
  OptionsPtr to(made, &natsOptions_Destroy);
  TRY_VOID(SetServers(made, options));
  TRY_VOID(SetCredentials(made, options));
  TRY_VOID(SetTls(made, options));
  TRY_VOID(Checked(natsOptions_SetName(made, options.name.c_str())));
  TRY_VOID(Checked(natsOptions_SetTimeout(made, Milliseconds(options.connect_time))));
  TRY_VOID(Checked(natsOptions_SetWriteDeadline(made, Milliseconds(options.write_time))));
  TRY_VOID(Checked(natsOptions_SetPingInterval(made, Milliseconds(options.ping_every))));
  TRY_VOID(Checked(natsOptions_SetMaxPingsOut(made, 2)));
  TRY_VOID(Checked(natsOptions_SetAllowReconnect(made, false)));
  TRY_VOID(Checked(natsOptions_SetNoEcho(made, true)));
  // Otherwise a thread of libnats sends a millisecond later.
  TRY_VOID(Checked(natsOptions_SetSendAsap(made, true)));
  TRY_VOID(Checked(natsOptions_SetErrorHandler(made, &IgnoreError, nullptr)));
  return to;
}

// A subscription's thread calls it until the subscription is complete.
struct Receiver {
  NatsConnection::OnMessage on_message;
};

void Receive(natsConnection*, natsSubscription*, natsMsg* message, void* closure) {
  const std::string_view bytes(natsMsg_GetData(message),
                               static_cast<size_t>(natsMsg_GetDataLength(message)));
  static_cast<Receiver*>(closure)->on_message(bytes);
  natsMsg_Destroy(message);
}

void Complete(void* closure) { delete static_cast<Receiver*>(closure); }

}  // namespace

Result<std::unique_ptr<NatsConnection>> NatsConnection::Connect(const NatsOptions& options) {
  TRY(const OptionsPtr made, MakeOptions(options));
  natsConnection* connection = nullptr;
  TRY_VOID(Checked(natsConnection_Connect(&connection, made.get())));
  return std::unique_ptr<NatsConnection>(new NatsConnection(connection));
}

NatsConnection::~NatsConnection() {
  natsConnection_Close(connection_);
  for (natsSubscription* const subscription : subscriptions_) {
    natsSubscription_Destroy(subscription);
  }
  natsConnection_Destroy(connection_);
}

Result<void> NatsConnection::Subscribe(const std::string& subject, OnMessage on_message) {
  natsSubscription* subscription = nullptr;
  auto receiver = std::make_unique<Receiver>(std::move(on_message));
  TRY_VOID(Checked(natsConnection_Subscribe(&subscription, connection_, subject.c_str(), &Receive,
                                            receiver.get())));
  subscriptions_.push_back(subscription);
  // From here on the receiver is freed by Complete().
  Receiver* const receiving = receiver.release();
  TRY_VOID(Checked(natsSubscription_SetOnCompleteCB(subscription, &Complete, receiving)));
  return Checked(natsSubscription_SetPendingLimits(subscription, kMostWaiting, kMostWaitingBytes));
}

Result<void> NatsConnection::Publish(const std::string& subject, std::string_view bytes) {
  return Checked(natsConnection_Publish(connection_, subject.c_str(), bytes.data(),
                                        static_cast<int>(bytes.size())));
}

bool NatsConnection::closed() const { return natsConnection_IsClosed(connection_); }

std::string NatsConnection::problem() const {
  const char* text = nullptr;
  const natsStatus status = natsConnection_GetLastError(connection_, &text);
  return status == NATS_OK ? "" : ProblemOf(status, text);
}

size_t NatsConnection::max_payload() const {
  return static_cast<size_t>(natsConnection_GetMaxPayload(connection_));
}

}  // namespace fathom
