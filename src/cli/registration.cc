#include "cli/registration.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/secret.h"
#include "base/text.h"
#include "codec/json.h"
#include "codec/percent_encode.h"
#include "io/http/fetch.h"

namespace fathom {
namespace {

constexpr Duration kFirstPause = std::chrono::seconds(1);
constexpr Duration kLongestWithdrawal = std::chrono::seconds(30);
constexpr size_t kMaxModelsShown = 200;  // bytes
constexpr size_t kMaxEntry = 64 << 10;

// "llama, qwen"; empty if the page is not a list of models.
std::string ModelsIn(std::string_view body) {
  const auto page = Json::ParseWithLargeNumbers(body);
  const Json* const data = page ? page->Find("data") : nullptr;
  if (data == nullptr || data->array() == nullptr) return "";
  std::string shown;
  for (const Json& model : *data->array()) {
    const Json* const id = model.Find("id");
    if (id == nullptr || id->string() == nullptr) continue;
    if (!shown.empty()) shown += ", ";
    shown += *id->string();
    if (shown.size() > kMaxModelsShown) return shown.substr(0, kMaxModelsShown);
  }
  return shown;
}

}  // namespace

std::string RegistrationPlan::KeyOf(std::string_view prefix, const Url& url) {
  return std::string(prefix) + PercentEncode(url.ToString());
}

Result<std::string> RegistrationPlan::ValueOf(const Url& url, std::string_view entry) {
  JsonWriter out;
  out.BeginObject().Key("url").String(url.ToString());
  if (entry.size() > kMaxEntry) {
    return Fail(Blame::kCaller, "--entry is longer than {} bytes", kMaxEntry);
  }
  if (!entry.empty()) {
    const auto json = Json::Parse(entry);
    if (!json || json->object() == nullptr) {
      return Fail(Blame::kCaller,
                  "--entry must be a JSON object, e.g. {{\"kv_events\": \"tcp://HOST:5557\"}}{}",
                  json ? "" : ": " + json.error().what);
    }
    for (const auto& [name, value] : *json->object()) {
      if (name != "url") {
        out.Key(name);
        std::string text;
        value.WriteTo(text);
        out.Raw(text);
        continue;
      }
      const std::string* const written = value.string();
      const auto same =
          written == nullptr ? Result<Url>(Fail(Blame::kCaller, "no text")) : Url::Parse(*written);
      if (!same || *same != url) {
        return Fail(Blame::kCaller, "the url in --entry is not the one of --url, {}; remove it",
                    url.ToString());
      }
    }
  }
  out.EndObject();
  return out.Take();
}

Registration::Registration(Loop& loop, Resolver& resolver, EtcdClient& etcd, RegistrationPlan plan,
                           Log& log)
    : loop_(loop),
      resolver_(resolver),
      etcd_(etcd),
      plan_(std::move(plan)),
      log_(log),
      random_(RandomSecret()) {}

void Registration::Start() {
  Spawn(CheckForever());
  Spawn(KeepForever());
}

void Registration::Withdraw(std::function<void(bool)> done) {
  done_ = std::move(done);
  Wake();
}

void Registration::Wake() {
  changed_ = true;
  if (wait_ != nullptr) wait_->Wake();
}

Task<void> Registration::Wait(Duration duration) {
  if (!changed_) {
    WakeableWait wait(loop_, loop_.now() + duration);
    wait_ = &wait;
    co_await wait;
    wait_ = nullptr;
  }
  changed_ = false;
}

Task<void> Registration::CheckForever() {
  while (!done_) {
    auto checking = Check();
    const auto checked = co_await checking;
    const bool before = healthy_;
    NoteCheck(checked);
    if (healthy_ && !before) {
      auto logging = LogModels();
      co_await logging;
    }
    co_await loop_.Sleep(plan_.interval);
  }
}

Task<Result<void>> Registration::Check() {
  FetchRequest request;
  request.path = plan_.health_path;
  request.max_answer = 1 << 20;
  auto fetching = Fetch(loop_, resolver_, plan_.engine, request, loop_.now() + plan_.timeout);
  auto answer = co_await fetching;
  if (!answer) co_return Fail(Blame::kPeer, "{}", answer.error().what);
  if (answer->status != 200) {
    co_return Fail(Blame::kPeer, "{} answered {}", plan_.health_path, answer->status);
  }
  co_return Result<void>();
}

void Registration::NoteCheck(const Result<void>& checked) {
  if (checked) {
    failed_checks_ = 0;
    said_unhealthy_ = false;
    if (std::exchange(healthy_, true)) return;
    Wake();
    return;
  }
  ++failed_checks_;
  const std::string url = plan_.engine.url.ToString();
  if (healthy_) {
    if (failed_checks_ < plan_.failures) return;
    healthy_ = false;
    said_unhealthy_ = true;
    log_.Warn("The engine fails its health checks and is withdrawn",
              {{"url", url}, {"checks", failed_checks_}, {"reason", checked.error().what}});
    Wake();
    return;
  }
  if (!std::exchange(said_unhealthy_, true)) {
    log_.Warn("The engine is not healthy yet; it is registered after its first good check",
              {{"url", url}, {"reason", checked.error().what}});
  }
}

Task<void> Registration::LogModels() {
  FetchRequest request;
  request.path = "/v1/models";
  auto fetching = Fetch(loop_, resolver_, plan_.engine, request, loop_.now() + plan_.timeout);
  auto answer = co_await fetching;
  const std::string models = answer && answer->status == 200 ? ModelsIn(answer->body) : "";
  log_.Info("The engine passes its health check",
            {{"url", plan_.engine.url.ToString()}, {"models", models}});
}

Task<void> Registration::KeepForever() {
  while (!done_) {
    if (!healthy_ && lease_ == 0) {
      auto waiting = Wait(std::chrono::hours(1));
      co_await waiting;
      continue;
    }
    const bool wanted = healthy_;
    EtcdResult<void> result;
    if (wanted) {
      auto renewing = Renew();
      result = co_await renewing;
    } else {
      auto revoking = Revoke();
      result = co_await revoking;
    }
    NoteEtcd(result);
    if (done_ || (result && wanted != healthy_)) continue;
    auto waiting = Wait(result ? plan_.ttl / 3 : NextPause());
    co_await waiting;
  }
  auto withdrawing = WithdrawInTime();
  co_await withdrawing;
}

Duration Registration::NextPause() {
  // Requests miss a worker that is not registered: the pauses stay short.
  const Duration longest =
      std::min(kFirstPause * (1 << std::min<uint32_t>(failed_calls_, 5)), plan_.ttl / 3);
  const auto part = static_cast<double>(longest.count()) * (0.5 + random_.Unit() / 2);
  return Duration(static_cast<int64_t>(part));
}

void Registration::NoteEtcd(const EtcdResult<void>& result) {
  if (result) {
    failed_calls_ = 0;
    if (std::exchange(etcd_away_, false)) log_.Info("etcd answers again");
    return;
  }
  ++failed_calls_;
  if (std::exchange(etcd_away_, true)) return;
  log_.Warn("etcd cannot be used; the engine goes on, and its registration is renewed later",
            {{"reason", result.error().what}});
}

Task<EtcdResult<void>> Registration::Renew() {
  if (lease_ != 0) {
    auto keeping = etcd_.KeepAlive(lease_);
    auto kept = co_await keeping;
    if (!kept && kept.error().cause != EtcdCause::kNoLease) {
      co_return std::unexpected(std::move(kept).error());
    }
    if (!kept) {
      log_.Warn("The lease of the registration is gone; the worker is registered again",
                {{"key", plan_.key}});
      former_lease_ = std::exchange(lease_, 0);
      registered_ = false;
    }
  }
  if (lease_ == 0) {
    auto granting = etcd_.Grant(plan_.ttl);
    auto granted = co_await granting;
    if (!granted) co_return std::unexpected(std::move(granted).error());
    lease_ = granted->id;
  }
  auto claiming = Claim();
  auto claimed = co_await claiming;
  co_return claimed;
}

Task<EtcdResult<void>> Registration::Claim() {
  auto putting = etcd_.PutIfAbsent(plan_.key, plan_.value, lease_);
  auto put = co_await putting;
  if (!put) co_return std::unexpected(std::move(put).error());
  if (!put->succeeded && put->found && put->found->lease != lease_) {
    auto taking = TakeOver(*put->found);
    auto taken = co_await taking;
    co_return taken;
  }
  said_taken_ = false;
  had_key_ = true;
  if (!std::exchange(registered_, true)) {
    log_.Info("Worker registered", {{"key", plan_.key}, {"url", plan_.engine.url.ToString()}});
  }
  co_return EtcdResult<void>();
}

Task<EtcdResult<void>> Registration::TakeOver(const EtcdPair& found) {
  const bool ours = found.lease != 0 && found.lease == former_lease_;
  if (had_key_ && !ours) {
    registered_ = false;
    if (!std::exchange(said_taken_, true)) {
      log_.Warn("Another registration has taken over this worker's key and keeps it",
                {{"key", plan_.key}, {"lease", fmt::format("{:x}", found.lease)}});
    }
    co_return EtcdResult<void>();
  }
  if (!ours) {
    log_.Warn("Another registration holds this worker's key; it is taken over",
              {{"key", plan_.key}, {"lease", fmt::format("{:x}", found.lease)}});
  }
  auto putting = etcd_.Put(plan_.key, plan_.value, lease_);
  auto put = co_await putting;
  if (!put) co_return std::unexpected(std::move(put).error());
  had_key_ = true;
  if (!std::exchange(registered_, true)) {
    log_.Info("Worker registered", {{"key", plan_.key}, {"url", plan_.engine.url.ToString()}});
  }
  co_return EtcdResult<void>();
}

Task<EtcdResult<void>> Registration::Revoke() {
  if (lease_ != 0) {
    auto revoking = etcd_.Revoke(lease_);
    auto revoked = co_await revoking;
    if (!revoked && revoked.error().cause != EtcdCause::kNoLease) {
      co_return std::unexpected(std::move(revoked).error());
    }
  }
  former_lease_ = std::exchange(lease_, 0);
  had_key_ = false;
  if (std::exchange(registered_, false)) log_.Info("Worker withdrawn", {{"key", plan_.key}});
  co_return EtcdResult<void>();
}

Task<void> Registration::WithdrawInTime() {
  // A lease that lives no longer than that has expired by then.
  const TimePoint deadline = loop_.now() + std::min(plan_.ttl, kLongestWithdrawal);
  for (;;) {
    auto revoking = Revoke();
    auto revoked = co_await revoking;
    if (revoked) {
      done_(true);
      co_return;
    }
    NoteEtcd(revoked);
    const Duration left = deadline - loop_.now();
    if (left <= Duration::zero()) break;
    co_await loop_.Sleep(std::min(left, NextPause()));
  }
  log_.Warn("etcd has not confirmed that the worker is withdrawn; its lease expires by itself",
            {{"key", plan_.key}, {"ttl_seconds", Seconds(plan_.ttl)}});
  done_(false);
}

}  // namespace fathom
