#include "config/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "config/origin.h"

namespace fathom {
namespace {

// "http://a/" and "http://a" are one worker.
std::string_view WithoutTrailingSlash(std::string_view url) {
  while (url.ends_with('/')) url.remove_suffix(1);
  return url;
}

// "--tls-cert (environment FATHOM_TLS_CERT)": the option, and where its value was set.
std::string Named(const Settings& settings, std::string_view name) {
  return fmt::format("--{} ({})", name, settings.OriginOf(name));
}

Result<> NeedsBoth(const Settings& settings, std::string_view given, std::string_view missing) {
  if (settings.Text(given).empty() || !settings.Text(missing).empty()) return {};
  return Fail(Blame::kCaller, "{}: needs --{} as well; set both or neither", Named(settings, given),
              missing);
}

// Without a scheme, a link would be read as a path, and a wrong one is noticed only when needed.
Result<> CheckDocsUrl(const Settings& settings) {
  constexpr std::string_view kName = "docs-url";
  if (FindOption(settings.command(), kName) == nullptr) return {};
  const std::string& url = settings.Text(kName);
  if (url.empty() || url.starts_with("https://") || url.starts_with("http://")) return {};
  return Fail(Blame::kCaller, "{}: '{}' must start with https:// or http://",
              Named(settings, kName), Shown(url));
}

constexpr std::string_view kWorkerSchemes[] = {"http",  "https",    "dns+http", "dns+https",
                                               "k8s",   "k8s-pods", "k8s-pool", "etcd",
                                               "etcds", "file"};

// The rest of the form is checked by whoever follows it.
Result<> CheckWorkerForm(const WorkerEntry& entry) {
  const size_t end = entry.url.find("://");
  const std::string_view scheme = std::string_view(entry.url).substr(0, end);
  const bool has_scheme = end != std::string::npos;
  if (!has_scheme || std::ranges::find(kWorkerSchemes, scheme) == std::end(kWorkerSchemes)) {
    const auto nearest = has_scheme ? Nearest(scheme, kWorkerSchemes) : std::nullopt;
    return Fail(Blame::kCaller, "{}: worker '{}' must start with {}://{}", entry.origin,
                fathom::Shown(entry.url), fmt::join(kWorkerSchemes, "://, "),
                nearest ? fmt::format("; did you mean {}://?", *nearest) : "");
  }
  // The next one of a list without its scheme.
  const bool one_host = scheme.ends_with("http") || scheme.ends_with("https");
  if (one_host && entry.url.find_first_of(", \t\r\n") != std::string::npos) {
    return Fail(Blame::kCaller,
                "{}: worker '{}' has a comma or a space: begin each worker with its "
                "scheme, as in http://a:8000,http://b:8000",
                entry.origin, fathom::Shown(entry.url));
  }
  return {};
}

bool IsHostAndPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const auto port = ParseDecimal(text.substr(colon + 1));
  return port && *port <= 65535;
}

}  // namespace

Settings::Settings(Command command) : command_(command) {
  for (const Option& option : Options()) {
    if (option.BelongsTo(command)) Set(option, DefaultValue(option), "default");
  }
}

void Settings::Set(const Option& option, OptionValue value, std::string origin) {
  CHECK(option.BelongsTo(command_));
  settings_.insert_or_assign(option.name, Setting{&option, std::move(value), std::move(origin)});
}

Result<> Settings::AddWorker(WorkerEntry entry) {
  const auto shown = [&] { return fathom::Shown(entry.url); };
  TRY_VOID(CheckWorkerForm(entry));
  for (const WorkerEntry& other : workers_) {
    if (WithoutTrailingSlash(other.url) != WithoutTrailingSlash(entry.url)) continue;
    return Fail(Blame::kCaller, "{}: worker '{}' is already named by {}; remove one of them",
                entry.origin, shown(), other.origin);
  }
  workers_.push_back(std::move(entry));
  return {};
}

const Settings::Setting& Settings::Find(std::string_view name) const {
  const auto found = settings_.find(name);
  CHECK(found != settings_.end());
  return found->second;
}

template <class T>
const T& Settings::Get(std::string_view name, OptionType type) const {
  const Setting& setting = Find(name);
  CHECK(setting.option->type == type);
  return std::get<T>(setting.value);
}

bool Settings::Flag(std::string_view name) const { return Get<bool>(name, OptionType::kFlag); }

int64_t Settings::Integer(std::string_view name) const {
  return Get<int64_t>(name, OptionType::kInteger);
}

double Settings::Number(std::string_view name) const {
  return Get<double>(name, OptionType::kNumber);
}

Duration Settings::Time(std::string_view name) const {
  return Get<Duration>(name, OptionType::kDuration);
}

uint64_t Settings::Bytes(std::string_view name) const {
  return Get<uint64_t>(name, OptionType::kBytes);
}

const std::string& Settings::Text(std::string_view name) const {
  return Get<std::string>(name, OptionType::kText);
}

const std::string& Settings::Choice(std::string_view name) const {
  return Get<std::string>(name, OptionType::kChoice);
}

const std::vector<std::string>& Settings::List(std::string_view name) const {
  return Get<std::vector<std::string>>(name, OptionType::kList);
}

const std::vector<std::string>& Settings::Files(std::string_view name) const {
  return Get<std::vector<std::string>>(name, OptionType::kFiles);
}

const std::string& Settings::Secret(std::string_view name) const {
  return Get<std::string>(name, OptionType::kSecret);
}

const std::vector<std::string>& Settings::Secrets(std::string_view name) const {
  return Get<std::vector<std::string>>(name, OptionType::kSecretList);
}

const std::string& Settings::OriginOf(std::string_view name) const { return Find(name).origin; }

std::string Settings::Shown(std::string_view name) const {
  const Setting& setting = Find(name);
  return FormatValue(*setting.option, setting.value);
}

Result<> Validate(const Settings& settings) {
  TRY_VOID(CheckDocsUrl(settings));
  if (settings.command() != Command::kServe) return {};
  TRY_VOID(NeedsBoth(settings, "tls-cert", "tls-key"));
  TRY_VOID(NeedsBoth(settings, "tls-key", "tls-cert"));
  TRY_VOID(NeedsBoth(settings, "admin-tls-cert", "admin-tls-key"));
  TRY_VOID(NeedsBoth(settings, "admin-tls-key", "admin-tls-cert"));
  TRY_VOID(NeedsBoth(settings, "admin-tls-cert", "admin-listen"));
  if (settings.Flag("literal-user-text") && !settings.Flag("forward-tokens")) {
    return Fail(Blame::kCaller,
                "{}: needs --forward-tokens; an engine that gets text makes special tokens of it",
                Named(settings, "literal-user-text"));
  }
  if (const std::string& listen = settings.Text("admin-listen");
      !listen.empty() && !IsHostAndPort(listen)) {
    return Fail(Blame::kCaller, "{}: '{}' must be HOST:PORT, e.g. 127.0.0.1:8001",
                Named(settings, "admin-listen"), Shown(listen));
  }
  if (const std::string& path = settings.Text("health-check-path"); !path.starts_with('/')) {
    return Fail(Blame::kCaller, "{}: '{}' must start with /", Named(settings, "health-check-path"),
                Shown(path));
  }
  if (settings.Text("host").empty()) {
    return Fail(Blame::kCaller, "{}: must not be empty; 0.0.0.0 listens on every interface",
                Named(settings, "host"));
  }
  return {};
}

}  // namespace fathom
