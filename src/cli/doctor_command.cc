// fathom doctor: why does cache-aware routing not work, and what is the fix?
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/version.h"
#include "base/wall_time.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "diagnose/doctor/diagnosis.h"
#include "diagnose/doctor/examination.h"
#include "diagnose/findings/report_html.h"
#include "diagnose/findings/report_json.h"
#include "diagnose/findings/report_markdown.h"
#include "diagnose/findings/report_text.h"
#include "diagnose/sizing/gpu.h"
#include "diagnose/sizing/kv_dtype.h"
#include "text/model/language_model.h"

namespace fathom {
namespace {

void Note(std::string_view what) { fmt::print(stderr, "fathom doctor: {}\n", what); }

EngineKind EngineOf(std::string_view name) {
  for (const EngineKind kind : {EngineKind::kVllm, EngineKind::kSglang, EngineKind::kTrtllm}) {
    if (name == Name(kind)) return kind;
  }
  return EngineKind::kUnknown;
}

StatedCase StatedIn(const Settings& s) {
  StatedCase stated;
  stated.engine = EngineOf(s.Choice("engine"));
  stated.gpu = s.Text("gpu");
  stated.tensor_parallel = static_cast<uint32_t>(s.Integer("tp"));
  stated.pipeline_parallel = static_cast<uint32_t>(s.Integer("pp"));
  stated.data_parallel = static_cast<uint32_t>(s.Integer("dp"));
  stated.kv_dtype = s.Text("kv-dtype");
  stated.memory_fraction = s.Number("memory-fraction");
  stated.block_size = static_cast<uint32_t>(s.Integer("block-size"));
  stated.max_sequences = static_cast<uint64_t>(s.Integer("max-num-seqs"));
  stated.replicas = static_cast<uint64_t>(s.Integer("worker-count"));
  stated.concurrency = static_cast<double>(s.Integer("concurrency"));
  stated.prompt_tokens = static_cast<double>(s.Integer("prompt-tokens"));
  stated.output_tokens = static_cast<double>(s.Integer("output-tokens"));
  stated.request_rate = s.Number("request-rate");
  stated.turn_gap = s.Time("turn-gap");
  return stated;
}

LiveTargets LiveIn(const Settings& s) {
  LiveTargets live;
  live.router_url = s.Text("url");
  live.dynamo_url = s.Text("dynamo-url");
  live.worker_urls = s.List("worker");
  live.admin_key = s.Secret("admin-key");
  live.api_key = s.Secret("api-key");
  live.worker_key = s.Secret("worker-api-key");
  live.ca_file = s.Text("ca-file");
  live.patience = s.Time("timeout");
  live.listen = s.Time("listen");
  live.workers_of_router = live.listen > Duration{} && live.worker_urls.empty();
  live.drain = s.Flag("drain");
  return live;
}

bool IsUrl(std::string_view text) {
  return text.starts_with("http://") || text.starts_with("https://");
}

// Checks that involve several options.
Result<ExaminationPlan> PlanOf(const Settings& s) {
  ExaminationPlan plan;
  plan.live = LiveIn(s);
  plan.logs = s.Files("logs");
  plan.manifests = s.Files("manifest");
  plan.gpu_pages = s.Files("nvidia-smi");
  for (const std::string& page : s.Files("dcgm")) {
    (IsUrl(page) ? plan.gpu_urls : plan.gpu_pages).push_back(page);
  }
  plan.kube = s.Flag("kube");
  plan.cluster.wish = {s.Text("kubeconfig"), s.Text("kube-context"), s.Text("namespace")};
  plan.cluster.log_lines = static_cast<size_t>(s.Integer("kube-log-lines"));
  plan.cluster.patience = s.Time("timeout");
  plan.model = s.Text("model-config").empty() ? s.Text("model-path") : s.Text("model-config");
  plan.weights = s.Bytes("weights");
  plan.stated = StatedIn(s);
  plan.probe_most = static_cast<size_t>(s.Integer("probe"));
  plan.probe_model = s.Text("probe-model");
  for (const std::vector<std::string>& urls :
       {std::vector{plan.live.router_url, plan.live.dynamo_url}, plan.live.worker_urls,
        plan.gpu_urls}) {
    for (const std::string& url : urls) {
      if (!url.empty()) TRY_VOID(Url::Parse(url));
    }
  }
  if (plan.probe_most > 0 && plan.live.router_url.empty() && plan.live.dynamo_url.empty()) {
    return Fail(Blame::kCaller, "--probe needs a router to send through: --url or --dynamo-url");
  }
  if (plan.live.listen > Duration{} && plan.live.router_url.empty() &&
      plan.live.worker_urls.empty()) {
    return Fail(Blame::kCaller, "--listen needs engines to listen to: --worker URL or --url");
  }
  if (!plan.stated.gpu.empty()) TRY_VOID(ParseGpu(plan.stated.gpu));
  if (!plan.stated.kv_dtype.empty()) TRY_VOID(ParseKvDtype(plan.stated.kv_dtype));
  return plan;
}

bool NamesASource(const ExaminationPlan& plan) {
  const LiveTargets& live = plan.live;
  return !live.router_url.empty() || !live.dynamo_url.empty() || !live.worker_urls.empty() ||
         plan.kube || !plan.logs.empty() || !plan.manifests.empty() || !plan.model.empty() ||
         !plan.gpu_pages.empty() || !plan.gpu_urls.empty();
}

// kubectl logs ... | fathom doctor --manifest FILE: piped input is meant to be read. But a pipe
// that is open by accident and stays empty must not block the command.
bool SomethingIsPipedIn() {
  constexpr int kPatience = 2000;  // milliseconds
  struct stat input{};
  if (::fstat(STDIN_FILENO, &input) != 0) return false;
  if (S_ISREG(input.st_mode)) return input.st_size > 0;
  if (!S_ISFIFO(input.st_mode)) return false;
  pollfd ready{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  return ::poll(&ready, 1, kPatience) == 1 && (ready.revents & POLLIN) != 0;
}

bool ReadsStandardInput(const ExaminationPlan& plan) {
  for (const auto* files : {&plan.logs, &plan.manifests, &plan.gpu_pages}) {
    if (std::ranges::find(*files, "-") != files->end()) return true;
  }
  return false;
}

// Decides whether to read standard input if the options leave it open.
Result<void> TakeStandardInput(ExaminationPlan& plan) {
  if (NamesASource(plan)) {
    const bool unclaimed = plan.logs.empty() && !ReadsStandardInput(plan);
    if (unclaimed && SomethingIsPipedIn()) plan.logs = {"-"};
    return {};
  }
  if (::isatty(STDIN_FILENO) == 1) {
    return Fail(Blame::kCaller,
                "nothing to examine: give --url, --worker, --dynamo-url, --logs, --manifest, "
                "--kube or --model-config; 'fathom doctor --help' describes each");
  }
  plan.logs = {"-"};
  return {};
}

std::string Rendered(const Report& report, const Settings& settings) {
  const std::string& format = settings.Choice("format");
  if (format == "json") return ReportJson(report);
  if (format == "markdown") return ReportMarkdown(report);
  if (format == "html") return ReportHtml(report);
  const bool to_a_file = !settings.Text("output").empty();
  const bool color =
      !to_a_file && ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  return ReportText(report,
                    {.color = color, .width = to_a_file ? kUsualColumns : TerminalColumns()});
}

Result<void> Write(const std::string& text, const std::string& path) {
  FILE* const out = path.empty() ? stdout : std::fopen(path.c_str(), "wb");
  if (out == nullptr) return Fail(Blame::kCaller, "{}: {}", path, std::strerror(errno));
  const bool written =
      std::fwrite(text.data(), 1, text.size(), out) == text.size() && std::fflush(out) == 0;
  const int problem = errno;
  if (out != stdout) std::fclose(out);
  if (!written) {
    return Fail(Blame::kCaller, "{}: {}", path.empty() ? "standard output" : path,
                std::strerror(problem));
  }
  return {};
}

}  // namespace

int RunDoctor(const Settings& settings) {
  auto plan = PlanOf(settings);
  if (plan) {
    if (auto taken = TakeStandardInput(*plan); !taken) plan = std::unexpected(taken.error());
  }
  if (!plan) {
    Note(plan.error().what);
    return kExitUsage;
  }
  if (const std::string& folder = settings.Text("model-path"); !folder.empty()) {
    auto model = LanguageModel::Load({.model = folder, .tokenizer = {}});
    if (model) {
      plan->live.model = *std::move(model);
    } else {
      Note(fmt::format("--model-path: {}; tokens are not compared", model.error().what));
    }
  }
  const Examination examination = Examine(*plan);
  Report report = Diagnose(examination.seen);
  report.version = kVersion;
  report.time = WallTimeNow();
  report.docs = DocsLinks(settings.Text("docs-url"));
  report.looked_at = examination.looked_at;
  report.sent = examination.sent;
  if (report.findings.empty() && examination.MissedAnything()) {
    report.verdict = examination.SawAnything()
                         ? "No problem found in what could be examined; some inputs could not be "
                           "examined."
                         : "Nothing could be examined.";
  }
  if (const auto written = Write(Rendered(report, settings), settings.Text("output")); !written) {
    Note(written.error().what);
    return kExitUnseen;
  }
  for (const LookedAt& look : report.looked_at) {
    if (!look.seen) Note(fmt::format("could not examine {}: {}", look.what, look.outcome));
  }
  if (!report.findings.empty()) return kExitFailed;
  return examination.MissedAnything() ? kExitUnseen : kExitFine;
}

}  // namespace fathom
