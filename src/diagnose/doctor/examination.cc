#include "diagnose/doctor/examination.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <future>
#include <utility>

#include "base/file.h"
#include "base/secret.h"
#include "diagnose/doctor/gpu_page.h"
#include "diagnose/doctor/memory_diagnosis.h"
#include "diagnose/logs/log_digest.h"
#include "diagnose/manifest/deployment_reader.h"
#include "diagnose/manifest/fleet_join.h"
#include "diagnose/manifest/patch_names.h"

namespace fathom {
namespace {

constexpr size_t kPiece = size_t{1} << 20;

const char* InputName(const std::string& path) { return path == "-" ? "<stdin>" : path.c_str(); }

std::string PathOf(const std::string& path) { return path == "-" ? "/dev/stdin" : path; }

// Hands a file to the reader, piece by piece.
template <class Take>
Result<void> ReadPieces(const std::string& path, Take take) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(
      path == "-" ? stdin : std::fopen(path.c_str(), "rb"),
      [](FILE* f) { return f == stdin ? 0 : std::fclose(f); });
  if (!file) return Fail(Blame::kCaller, "{}", std::strerror(errno));
  std::vector<char> piece(kPiece);
  for (;;) {
    const size_t got = std::fread(piece.data(), 1, piece.size(), file.get());
    if (got > 0) take(std::string_view(piece.data(), got));
    if (got < piece.size()) break;
  }
  if (std::ferror(file.get()) != 0) return Fail(Blame::kCaller, "{}", std::strerror(errno));
  return {};
}

using Probing = std::future<ProbeReport>;

class Examiner {
 public:
  explicit Examiner(const ExaminationPlan& plan) : plan_(plan) {}

  Examination Run() {
    ReadModel();
    ReadGpus();
    ReadLogs();
    ReadManifests();
    if (plan_.kube) LookAtKube();
    LintFiles();
    Probing probing;
    if (plan_.probe_most > 0) probing = StartProbe();
    LookAtLive(std::move(probing));
    return std::move(done_);
  }

 private:
  void Note(std::string what, bool seen, std::string outcome) {
    done_.looked_at.push_back({std::move(what), seen, std::move(outcome)});
  }

  void ReadModel() {
    if (plan_.model.empty()) return;
    auto shape = ReadModelShape(plan_.model);
    const std::string what = "model " + plan_.model;
    if (!shape) return Note(what, false, shape.error().what);
    if (plan_.weights > 0) shape->weight_bytes = plan_.weights;
    Note(what, true, shape->architecture);
    done_.seen.model = *std::move(shape);
  }

  void ReadGpus() {
    for (const std::string& path : plan_.gpu_pages) {
      const std::string what = fmt::format("GPUs {}", InputName(path));
      const auto text = ReadFile(PathOf(path));
      if (!text) {
        Note(what, false, text.error().what);
        continue;
      }
      TakeGpus(what, *text);
    }
    for (const std::string& url : plan_.gpu_urls) {
      const auto page = FetchGpuPage(url, plan_.live, done_.sent);
      if (!page) {
        Note("GPUs " + url, false, page.error().what);
        continue;
      }
      TakeGpus("GPUs " + url, *page);
    }
  }

  void TakeGpus(const std::string& what, std::string_view page) {
    auto readings = ReadGpuMemory(page);
    if (!readings) return Note(what, false, readings.error().what);
    Note(what, true, fmt::format("{} GPUs", readings->size()));
    std::ranges::move(*readings, std::back_inserter(done_.seen.gpus));
  }

  void ReadLogs() {
    for (const std::string& path : plan_.logs) {
      LogDigest digest;
      const auto read = ReadPieces(path, [&](std::string_view piece) { digest.Feed(piece); });
      digest.End();
      const std::string what = fmt::format("log {}", InputName(path));
      if (!read) {
        Note(what, false, read.error().what);
        continue;
      }
      TakeLog(InputName(path), what, digest);
    }
  }

  void TakeLog(std::string name, const std::string& what, const LogDigest& digest) {
    const LogFacts& facts = digest.facts();
    Note(
        what, facts.recognised > 0,
        facts.lines == 0 ? std::string("it is empty")
        : facts.recognised == 0
            ? fmt::format("none of its {} lines is a known line of a router or engine about caches",
                          Thousands(static_cast<double>(facts.lines)))
            : fmt::format("{} lines, {} of them recognized",
                          Thousands(static_cast<double>(facts.lines)),
                          Thousands(static_cast<double>(facts.recognised))));
    if (facts.recognised > 0) done_.seen.logs.push_back({std::move(name), facts});
  }

  void ReadManifests() {
    for (const std::string& path : plan_.manifests) {
      const std::string what = fmt::format("manifest {}", InputName(path));
      auto text = ReadFile(PathOf(path));
      if (!text) {
        Note(what, false, text.error().what);
      } else {
        done_.seen.files.push_back({InputName(path), *std::move(text)});
      }
    }
    NameForPatch(done_.seen.files);
  }

  void LookAtKube() {
    LogDigest digest;
    std::string open;
    const auto close = [&] {
      if (open.empty()) return;
      digest.End();
      if (digest.facts().lines > 0) done_.seen.logs.push_back({open, digest.facts()});
      digest = {};
    };
    KubeView view =
        LookAtCluster(plan_.cluster, [&](std::string_view source, std::string_view piece) {
          if (source != open) {
            close();
            open = std::string(source);
          }
          digest.Feed(piece);
        });
    close();
    std::ranges::copy(view.looked_at, std::back_inserter(done_.looked_at));
    if (view.looked_at.empty()) Note("Kubernetes", view.seen, view.problem);
    std::ranges::copy(view.sent, std::back_inserter(done_.sent));
    std::ranges::move(view.files, std::back_inserter(done_.seen.files));
    done_.seen.kube = std::move(view);
  }

  // What the files deploy, and what is wrong with that. A file that cannot be read does not keep
  // the others from being understood.
  void LintFiles() {
    if (done_.seen.files.empty()) return;
    ReadDeployment read = ReadDeploymentFiles(done_.seen.files);
    // The operator has named all of these files.
    const JoinedFiles joined = JoinHalves(read.deployment, JoinScope::kAll);
    for (SourceFile& file : done_.seen.files) {
      const auto found = joined.find(file.name);
      if (found != joined.end()) file.graph = found->second;
    }
    Join(joined, read.deployment);
    done_.seen.deployment = std::move(read.deployment);
    done_.seen.lint = Lint(done_.seen.files).findings;
    for (const SourceFile& file : done_.seen.files) {
      if (file.name.starts_with("kube:")) continue;
      const auto problem = std::ranges::find(read.unread, file.name, &UnreadFile::name);
      const auto programs = std::ranges::count_if(
          done_.seen.deployment.programs,
          [&](const Program& program) { return program.place.file == file.name; });
      if (problem != read.unread.end()) {
        Note("manifest " + file.name, false, problem->problem);
      } else if (done_.seen.deployment.programs.empty()) {
        Note("manifest " + file.name, false, "it has no engine and no router");
      } else {
        Note("manifest " + file.name, true, fmt::format("{} programs", programs));
      }
    }
  }

  // The probe's traffic is what there is to listen to, and what it leaves behind in the counters is
  // worth a second look.
  void LookAtLive(Probing probing) {
    const LiveTargets& live = plan_.live;
    if (live.router_url.empty() && live.dynamo_url.empty() && live.worker_urls.empty()) return;
    const bool listens = live.listen > Duration{};
    if (probing.valid() && !listens) TakeProbe(probing.get());
    LiveView view = LookLive(live);
    if (probing.valid()) {
      TakeProbe(probing.get());
      LookAgain(view);
    }
    if (view.router) {
      // One that hides its workers was not looked at, whatever else it told.
      const bool shown = view.router->reached && view.router->problem.empty();
      Note("router " + view.router->url, shown,
           shown ? fmt::format("Fathom {}, {} workers", view.router->version,
                               view.router->workers.size())
                 : view.router->problem);
    }
    if (view.dynamo) {
      Note("Dynamo frontend " + view.dynamo->url, view.dynamo->reached,
           view.dynamo->reached
               ? fmt::format("{}, {} models", view.dynamo->status, view.dynamo->models.size())
               : view.dynamo->problem);
    }
    for (const LookedAtWorker& worker : view.workers) {
      Note("worker " + worker.look.url, worker.look.reached,
           worker.look.reached
               ? fmt::format("{} {}", Name(worker.look.report.engine), worker.look.version)
               : worker.look.problem);
    }
    for (const std::string& left : view.left_out) Note("workers", false, left);
    std::ranges::copy(view.sent, std::back_inserter(done_.sent));
    done_.seen.live = std::move(view);
  }

  void LookAgain(LiveView& view) {
    LiveTargets now = plan_.live;
    now.listen = {};
    now.workers_of_router = view.workers.size() > plan_.live.worker_urls.size();
    LiveView after = LookLive(now);
    if (after.router && after.router->reached) view.router = std::move(after.router);
    if (after.dynamo && after.dynamo->reached) view.dynamo = std::move(after.dynamo);
    for (LookedAtWorker& worker : view.workers) {
      const auto same =
          std::ranges::find(after.workers, worker.look.url,
                            [](const LookedAtWorker& other) { return other.look.url; });
      if (same != after.workers.end() && same->look.reached) worker.look = std::move(same->look);
    }
    std::ranges::copy(after.sent, std::back_inserter(view.sent));
  }

  const std::string& ProbedUrl() const {
    return plan_.live.router_url.empty() ? plan_.live.dynamo_url : plan_.live.router_url;
  }

  // On a thread of its own: it has its own loop.
  Probing StartProbe() {
    const auto endpoint = EndpointOf(ProbedUrl(), plan_.live.ca_file);
    if (!endpoint) {
      Note("probe", false, endpoint.error().what);
      return {};
    }
    ProbePlan options;
    options.endpoint = *endpoint;
    options.model = plan_.probe_model;
    options.api_key = plan_.live.api_key;
    options.most_at_once = plan_.probe_most;
    options.seed = RandomSecret();
    return std::async(std::launch::async, RunProbe, std::move(options));
  }

  void TakeProbe(ProbeReport probe) {
    Note("probe " + ProbedUrl(), !probe.levels.empty(),
         probe.problem.empty() ? probe.what : probe.problem);
    std::ranges::copy(probe.sent, std::back_inserter(done_.sent));
    done_.seen.probe = std::move(probe);
  }

  const ExaminationPlan& plan_;
  Examination done_;
};

}  // namespace

bool Examination::SawAnything() const {
  return std::ranges::any_of(looked_at, [](const LookedAt& look) { return look.seen; });
}

bool Examination::MissedAnything() const {
  return std::ranges::any_of(looked_at, [](const LookedAt& look) { return !look.seen; });
}

Examination Examine(const ExaminationPlan& plan) {
  Examiner examiner(plan);
  Examination done = examiner.Run();
  done.seen.stated = plan.stated;
  return done;
}

}  // namespace fathom
