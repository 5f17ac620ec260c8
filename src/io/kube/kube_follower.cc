#include "io/kube/kube_follower.h"

#include <algorithm>
#include <expected>
#include <optional>
#include <random>
#include <utility>

#include "base/peer_text.h"
#include "codec/json_scan.h"
#include "codec/percent_encode.h"
#include "io/kube/kube_call.h"
#include "io/kube/kube_event.h"
#include "io/kube/kube_outage.h"
#include "io/kube/kube_picture.h"
#include "io/kube/line_splitter.h"
#include "io/net/wakeable_wait.h"
#include "io/net/yield.h"

namespace fathom {
namespace {

constexpr int kVersionGone = 410;

}  // namespace

// The work of a follower. Shared with its coroutine, which may outlive the follower by some turns.
class KubeFollower::Run {
 public:
  Run(Loop& loop, KubeClient& client, KubeQuery query, KubeListener& listener,
      const KubeFollowerOptions& options)
      : loop_(loop),
        client_(client),
        query_(std::move(query)),
        listener_(listener),
        options_(options),
        outage_(options.first_pause, options.longest_pause, std::random_device()()),
        settled_(*this) {
    if (query_.network_namespace.empty()) query_.network_namespace = client_.network_namespace();
    path_ = KubePath(query_.resource, query_.network_namespace);
    if (!query_.label_selector.empty()) {
      selectors_ += "&labelSelector=" + PercentEncode(query_.label_selector);
    }
    if (!query_.field_selector.empty()) {
      selectors_ += "&fieldSelector=" + PercentEncode(query_.field_selector);
    }
  }

  void Stop() {
    stopped_ = true;
    settled_.Disarm();
    if (call_) call_->Cancel();
    if (pause_ != nullptr) pause_->Wake();
  }

  static Task<void> Forever(std::shared_ptr<Run> run) {
    co_await Yield(run->loop_);  // Start() itself calls nobody
    while (!run->stopped_) {
      auto attempting = run->version_.empty() ? run->List() : run->Watch();
      Outcome outcome = co_await attempting;
      run->settled_.Disarm();
      run->call_.reset();
      if (run->stopped_) break;
      const Duration pause = run->Judge(std::move(outcome));
      if (run->stopped_ || pause <= Duration(0)) continue;
      auto pausing = run->Pause(pause);
      co_await pausing;
    }
  }

 private:
  // How one list or one watch has ended.
  struct Outcome {
    enum class Kind : uint8_t {
      kDone,    // a list is complete, a watch has ended in order
      kGone,    // the server no longer has the version, or the page
      kCut,     // the connection of a watch that worked has ended; what comes next is the verdict
      kFailed,  // the rest says why
    };
    Kind kind = Kind::kDone;
    KubeCause cause = KubeCause::kNone;
    KubeTrouble trouble = {};
    Duration retry_after = {};
  };
  // Nothing: it goes on.
  using Ending = std::optional<Outcome>;

  // Fires when a watch has been open for long enough.
  struct Settled : Timer {
    explicit Settled(Run& r) : Timer(&OnFire), run(r) {}
    static void OnFire(Timer& timer) { static_cast<Settled&>(timer).run.Works(); }
    Run& run;
  };

  // Tells what has to be told; how long to wait before the next attempt.
  Duration Judge(Outcome outcome) {
    const bool well = std::exchange(works_, false);
    if (well) gone_ = false;
    if (outcome.kind == Outcome::Kind::kGone) {
      version_.clear();
      // One is an old version. Another one, and no list in between, is a server that has nothing.
      if (std::exchange(gone_, true)) {
        outcome =
            Failed("list", KubeCause::kAway, kVersionGone, "the server answers 410 to each list");
      }
    }
    if (outcome.kind != Outcome::Kind::kFailed) {
      // A server that ends every watch at once is not asked in a tight circle, and many clients do
      // not come back at once to one that has crashed.
      const bool at_once = well && outcome.kind != Outcome::Kind::kCut;
      return at_once ? Duration(0) : outage_.Pause();
    }
    const bool tell = outage_.Fails(outcome.cause, loop_.now());
    if (outage_.Lasts(loop_.now()) >= options_.relist_after) version_.clear();
    if (tell) listener_.OnTrouble(outcome.trouble);
    return std::max(outage_.Pause(), std::min(outcome.retry_after, options_.longest_retry_after));
  }

  void Works() {
    works_ = true;
    if (outage_.Works()) listener_.OnRecovered();
  }

  Task<void> Pause(Duration pause) {
    WakeableWait wait(loop_, loop_.now() + pause);
    pause_ = &wait;
    co_await wait;
    pause_ = nullptr;
  }

  Outcome Failed(std::string_view verb, KubeCause cause, int status, std::string_view why,
                 Duration retry_after = {}) const {
    std::string what(why);
    // Words about rights say this already.
    if (cause != KubeCause::kRights) {
      what = fmt::format("cannot {} {} in namespace {}: {}", verb, query_.resource.plural,
                         query_.network_namespace, why);
    }
    return {Outcome::Kind::kFailed, cause, {status, std::move(what)}, retry_after};
  }
  Outcome NoAnswer(std::string_view verb, const Error& error) const {
    return Failed(verb, KubeCause::kAway, 0, Shown(error.what));
  }
  Outcome Nonsense(std::string_view verb, std::string_view why) const {
    return Failed(verb, KubeCause::kNonsense, 0, why);
  }
  Outcome Refused(std::string_view verb, int status, Duration retry_after = {}) const {
    if (status == kVersionGone) return {.kind = Outcome::Kind::kGone};
    const KubeResource& resource = query_.resource;
    std::string why =
        RefusalWords(status, verb, resource.plural, query_.network_namespace, resource.group);
    if (status == 404) why += "; is what defines them installed in this cluster?";
    return Failed(verb, CauseOfStatus(status), status, why, retry_after);
  }
  Outcome TooMany(std::string_view verb) const {
    return Nonsense(verb, fmt::format("there are more than {} objects; name fewer with a selector",
                                      KubePicture::kMaxObjects));
  }

  // Sends a request. A pass that is refused is replaced by a new one, once. Returns when the head
  // of a good answer has come.
  Task<Ending> Ask(std::string_view verb, std::string query) {
    const std::string target = fmt::format("{}?{}{}", path_, query, selectors_);
    for (bool refused = false;;) {
      auto entering = client_.Enter();
      auto pass = co_await entering;
      if (stopped_) co_return Outcome();
      if (!pass) co_return Failed(verb, KubeCause::kCredentials, 0, Shown(pass.error().what));
      client_.Announce(path_);
      call_.emplace(loop_, client_.resolver());
      auto sending = call_->Send(**pass, target, loop_.now() + client_.patience());
      const auto sent = co_await sending;
      if (stopped_) co_return Outcome();
      if (!sent) co_return NoAnswer(verb, sent.error());
      if (call_->status() == 401) {
        client_.Refused(*pass);
        if (!std::exchange(refused, true)) continue;
      }
      if (call_->status() != 200) {
        co_return Refused(verb, call_->status(), call_->retry_after());
      }
      if (!call_->json()) co_return Nonsense(verb, "the answer is not of type application/json");
      co_return std::nullopt;
    }
  }

  Task<Outcome> List() {
    picture_.BeginList();
    KubePage page;
    std::string next;
    do {
      std::string query = fmt::format("limit={}", options_.page);
      if (!next.empty()) query += "&continue=" + PercentEncode(next);
      auto asking = Ask("list", std::move(query));
      auto refused = co_await asking;
      if (refused) co_return *std::move(refused);
      auto reading = call_->ReadAll(kMaxPage);
      const auto body = co_await reading;
      if (stopped_) co_return Outcome();
      if (!body) co_return NoAnswer("list", body.error());
      auto read = ReadKubePage(*body);
      if (!read) co_return Nonsense("list", read.error().what);
      page = *std::move(read);
      auto applying = TakeItems(page.items);
      auto ended = co_await applying;
      if (ended) co_return *std::move(ended);
      next = std::move(page.next);
    } while (!next.empty());
    version_ = std::move(page.version);
    for (const std::string& name : picture_.EndList()) {
      listener_.OnGone(name);
      if (stopped_) co_return Outcome();
    }
    works_ = true;
    listener_.OnListed();
    co_return Outcome();
  }

  Task<Ending> TakeItems(std::string_view items) {
    LoopShare share(loop_);
    JsonElements elements(items);
    while (const auto item = elements.Next()) {
      if (share.Spent(item->size())) {
        co_await Yield(loop_);
        if (stopped_) co_return Outcome();
      }
      const auto object = Json::ParseWithLargeNumbers(*item);
      const std::string name = object ? KubeNameOf(*object) : "";
      if (name.empty()) co_return Nonsense("list", "an object of the list has no name");
      if (!Put(name, *object)) co_return TooMany("list");
      if (stopped_) co_return Outcome();
    }
    co_return std::nullopt;
  }

  // False: there is no room for it.
  bool Put(const std::string& name, const Json& object) {
    const auto change = picture_.Put(name, KubeContentHash(object));
    if (change == KubePicture::Change::kTold) listener_.OnObject(name, object);
    return change != KubePicture::Change::kNoRoom;
  }

  Task<Outcome> Watch() {
    const Duration length = outage_.Between(options_.shortest_watch, options_.longest_watch);
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(length);
    std::string query =
        fmt::format("watch=true&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}",
                    PercentEncode(version_), seconds.count());
    auto asking = Ask("watch", std::move(query));
    auto refused = co_await asking;
    if (refused) co_return *std::move(refused);
    loop_.timers().Arm(settled_, loop_.now() + options_.settle);
    const TimePoint deadline = loop_.now() + seconds + options_.grace;
    call_->set_deadline(deadline);
    LineSplitter lines;
    LoopShare share(loop_);
    for (;;) {
      for (const std::string_view piece : call_->pieces()) {
        lines.Feed(piece);
        while (const auto line = lines.Next()) {
          auto ended = TakeLine(*line);
          if (stopped_) co_return Outcome();
          if (ended) co_return *std::move(ended);
          if (share.Spent(line->size())) co_await Yield(loop_);
          if (stopped_) co_return Outcome();
        }
        if (lines.open() > kMaxEvent) {
          co_return Nonsense("watch", fmt::format("an event is longer than {} bytes", kMaxEvent));
        }
      }
      if (call_->over()) break;
      auto reading = call_->Read();
      const auto read = co_await reading;
      if (stopped_) co_return Outcome();
      if (read) continue;
      const bool silent = loop_.now() >= deadline;
      if (works_ && !silent) co_return Outcome{.kind = Outcome::Kind::kCut};
      co_return NoAnswer("watch", read.error());
    }
    if (lines.open() > 0) co_return Nonsense("watch", "the watch ended within an event");
    co_return Outcome();
  }

  Ending TakeLine(std::string_view line) {
    auto event = ReadKubeEvent(line);
    if (!event) return Nonsense("watch", event.error().what);
    switch (event->kind) {
      case KubeEvent::Kind::kError:
        return Refused("watch", event->code);
      case KubeEvent::Kind::kAdded:
      case KubeEvent::Kind::kModified:
        if (!Put(event->name, event->object)) return TooMany("watch");
        break;
      case KubeEvent::Kind::kDeleted:
        if (picture_.Remove(event->name)) listener_.OnGone(event->name);
        break;
      case KubeEvent::Kind::kBookmark:
        break;
    }
    if (stopped_ || event->version == version_) return std::nullopt;
    version_ = std::move(event->version);
    Works();
    return std::nullopt;
  }

  Loop& loop_;
  KubeClient& client_;
  KubeQuery query_;
  KubeListener& listener_;
  const KubeFollowerOptions options_;
  std::string path_;
  std::string selectors_;
  KubePicture picture_;
  KubeOutage outage_;
  Settled settled_;
  std::string version_;           // to watch from; empty: a list comes first
  std::optional<KubeCall> call_;  // in progress
  WakeableWait* pause_ = nullptr;
  bool works_ = false;  // the attempt in progress has shown it
  bool gone_ = false;   // 410 was the last that was heard
  bool stopped_ = false;
};

KubeFollower::KubeFollower(Loop& loop, KubeClient& client, KubeQuery query, KubeListener& listener,
                           KubeFollowerOptions options)
    : run_(std::make_shared<Run>(loop, client, std::move(query), listener, options)) {}

KubeFollower::~KubeFollower() { Stop(); }

void KubeFollower::Start() { Spawn(Run::Forever(run_)); }

void KubeFollower::Stop() { run_->Stop(); }

}  // namespace fathom
