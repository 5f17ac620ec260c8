#include "io/kube/kube_login.h"

#include <algorithm>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "base/text.h"
#include "codec/base64.h"
#include "io/kube/exec_credential.h"
#include "io/net/side_work.h"
#include "io/net/wakeable_wait.h"
#include "io/net/watched_file.h"

namespace fathom {
namespace {

using PassPointer = std::shared_ptr<const KubePass>;

// Nothing that would end or split a header.
bool IsHeaderToken(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return c > ' ' && c < 0x7f; });
}

// Over plain HTTP nobody is told who we are.
std::string AuthorizationOf(const KubeAccess& access) {
  const KubeIdentity& identity = access.identity;
  if (!access.server.tls()) return "";
  if (!identity.token.empty()) return "Bearer " + identity.token;
  if (identity.username.empty()) return "";
  return "Basic " + EncodeBase64(identity.username + ":" + identity.password);
}

Result<PassPointer> MakePass(const KubeAccess& access) {
  if (!IsHeaderToken(access.identity.token)) {
    return Fail(Blame::kCaller, "{}: its token contains invalid bytes", access.origin);
  }
  auto pass = std::make_shared<KubePass>();
  pass->endpoint = {access.server, nullptr, access.tls_server_name};
  pass->authorization = AuthorizationOf(access);
  if (access.server.tls()) {
    auto tls = TlsClientContext::FromPem({.authorities = access.authorities,
                                          .certificate = access.identity.certificate,
                                          .key = access.identity.key});
    if (!tls) return std::unexpected(std::move(tls).error().In(access.origin));
    pass->endpoint.tls = *std::move(tls);
  }
  return pass;
}

// What one look has found.
struct Renewal {
  PassPointer pass;  // nullptr: the former one is still right
  std::optional<std::chrono::system_clock::time_point> expires;
  std::string problem;  // why there is nothing to show; else empty
};

// The access as its files and its plugin have it now. One thread at a time.
class RenewedAccess {
 public:
  RenewedAccess(KubeAccess access, std::stop_token stop)
      : access_(std::move(access)),
        stop_(std::move(stop)),
        token_(access_.files.token, kMaxFile),
        authorities_(access_.files.authorities, kMaxFile),
        certificate_(access_.files.certificate, kMaxFile),
        key_(access_.files.key, kMaxFile) {}

  Renewal Look(bool run_plugin) {
    KubeAccess next = access_;
    Take(token_, next.identity.token);
    next.identity.token = std::string(Trim(next.identity.token));
    Take(authorities_, next.authorities);
    Take(certificate_, next.identity.certificate);
    Take(key_, next.identity.key);
    if (run_plugin && next.plugin) {
      auto identity = RunExecPlugin(*next.plugin, next, kPluginPatience, stop_);
      if (!identity) return {nullptr, std::nullopt, identity.error().what};
      next.identity = *std::move(identity);
    }
    Renewal renewal;
    renewal.expires = next.identity.expires;
    if (!run_plugin && Same(next, access_)) return renewal;
    auto pass = MakePass(next);
    if (!pass) {
      // Half a rotation, or a bad file: the next look may find the rest of it.
      if (run_plugin) renewal.problem = pass.error().what;
      return renewal;
    }
    access_ = std::move(next);
    renewal.pass = *std::move(pass);
    return renewal;
  }

 private:
  static constexpr size_t kMaxFile = size_t{1} << 20;

  static void Take(WatchedFile& file, std::string& into) {
    if (file.path().empty()) return;
    file.Refresh();
    if (!file.text().empty()) into = file.text();
  }
  static bool Same(const KubeAccess& a, const KubeAccess& b) {
    return a.identity.token == b.identity.token && a.authorities == b.authorities &&
           a.identity.certificate == b.identity.certificate && a.identity.key == b.identity.key;
  }

  KubeAccess access_;
  const std::stop_token stop_;
  WatchedFile token_;
  WatchedFile authorities_;
  WatchedFile certificate_;
  WatchedFile key_;
};

}  // namespace

// Shared with the coroutines that wait and with the job that runs, which may outlive the login.
struct KubeLogin::State : std::enable_shared_from_this<State> {
  State(Loop& on, const KubeAccess& access) : loop(on), looks_at_files(access.files.any()) {
    const KubeIdentity& identity = access.identity;
    has_plugin = access.plugin.has_value();
    needs_plugin = has_plugin && identity.token.empty() && identity.certificate.empty();
    expires = identity.expires;
  }

  bool PluginDue() const {
    if (!has_plugin) return false;
    if (needs_plugin) return true;
    if (expires && *expires - kBeforeExpiry <= std::chrono::system_clock::now()) return true;
    return refused && loop.now() - plugin_ran >= kPluginPause;
  }
  bool Due() const {
    if (work == nullptr || renewing) return false;
    return PluginDue() || (looks_at_files && (refused || loop.now() - looked >= kLookAgain));
  }

  void BeginRenewal() {
    const bool run_plugin = PluginDue();
    auto look = [self = shared_from_this(), run_plugin] {
      Renewal found = self->access->Look(run_plugin);
      self->loop.Post([self, run_plugin, found = std::move(found)]() mutable {
        self->Finish(run_plugin, std::move(found));
      });
    };
    renewing = work->Run(std::move(look));
  }

  void Finish(bool ran_plugin, Renewal found) {
    renewing = false;
    refused = false;
    looked = loop.now();
    problem = std::move(found.problem);
    if (ran_plugin) {
      plugin_ran = loop.now();
      needs_plugin = !problem.empty();
      expires = found.expires;
    }
    if (found.pass != nullptr) pass = std::move(found.pass);
    WakeAll();
  }

  void WakeAll() {
    for (WakeableWait* wait : std::exchange(waiting, {})) wait->Wake();
  }

  static Task<Result<PassPointer>> Show(std::shared_ptr<State> state) {
    if (state->Due()) state->BeginRenewal();
    while (state->renewing && !state->closed) {
      WakeableWait wait(state->loop);
      state->waiting.push_back(&wait);
      co_await wait;
    }
    if (state->closed) co_return Fail(Blame::kCaller, "the login is being ended");
    if (!state->problem.empty()) co_return Fail(Blame::kCaller, "{}", state->problem);
    co_return state->pass;
  }

  Loop& loop;
  std::stop_source stop;
  std::unique_ptr<SideWork> work;         // none: nothing here ever changes
  std::unique_ptr<RenewedAccess> access;  // the job's, while one runs
  const bool looks_at_files;
  bool has_plugin = false;
  bool needs_plugin = false;
  std::optional<std::chrono::system_clock::time_point> expires;
  PassPointer pass;
  TimePoint looked;
  TimePoint plugin_ran;
  std::string problem;
  bool refused = false;
  bool renewing = false;
  bool closed = false;
  std::vector<WakeableWait*> waiting;
};

Result<std::unique_ptr<KubeLogin>> KubeLogin::Create(Loop& loop, const KubeAccess& access) {
  auto state = std::make_shared<State>(loop, access);
  TRY(state->pass, MakePass(access));
  if (state->looks_at_files || state->has_plugin) {
    state->access = std::make_unique<RenewedAccess>(access, state->stop.get_token());
    state->work = std::make_unique<SideWork>(1);
  }
  return std::unique_ptr<KubeLogin>(new KubeLogin(std::move(state)));
}

KubeLogin::KubeLogin(std::shared_ptr<State> state) : state_(std::move(state)) {}

KubeLogin::~KubeLogin() {
  state_->closed = true;
  state_->stop.request_stop();
  if (state_->work != nullptr) state_->work->Stop();
  state_->work.reset();
  state_->WakeAll();
}

Task<Result<std::shared_ptr<const KubePass>>> KubeLogin::Current() { return State::Show(state_); }

void KubeLogin::Refused(const std::shared_ptr<const KubePass>& pass) {
  if (pass == state_->pass) state_->refused = true;
}

}  // namespace fathom
