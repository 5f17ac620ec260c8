#include <fmt/format.h>

#include <utility>

#include "config/help.h"

namespace fathom {
namespace {

constexpr std::string_view kIntroduction = R"(# Configuration

This page is written by `./dev docs` from the table of options in `src/config/options.cc`; change
the table, not the page.

## Where an option comes from

The strongest of these wins:

1. the flag, e.g. `--max-in-flight 500`
2. the variable `FATHOM_*`, e.g. `FATHOM_MAX_IN_FLIGHT=500`
3. the variable `DYN_*` that Dynamo has for it, where there is one
4. the key in the YAML file that `--config` or `FATHOM_CONFIG` names, e.g. `max-in-flight: 500`
5. the default

`fathom serve --print-config` prints every option with its value and its source.

Unknown flags, unknown `FATHOM_*` variables and unknown YAML keys are errors that name the nearest
option. Unknown `DYN_*` variables are ignored. An empty variable counts as not set, except for keys:
an empty key is an error, because it would silently turn authentication off. Variables that Kubernetes sets in
pods for a Service whose name begins with fathom (`FATHOM_PORT=tcp://…`, `FATHOM_SERVICE_HOST`) are
ignored. Wrong usage or configuration
is one line on standard error and exit status 78.

## How values are written

| kind | examples |
|---|---|
| time | `250ms`, `5s`, `2m`, `1h`, `1d`; a plain number counts seconds: `0.25` |
| size | `64MiB`, `64MB`; a plain number counts bytes: `1024` |
| switch | `--log-requests`, `--no-log-requests`, `--log-requests=false`, `FATHOM_LOG_REQUESTS=true` |
| list | `--worker-urls http://a:8000 http://b:8000`, `--worker-urls http://a:8000,http://b:8000`, or the flag given again; in YAML also a sequence. A worker's URL ends only where another scheme begins, so hosts and selectors may have commas |

## The YAML file

Keys are spelled like the options; `_` may stand for `-`. Workers that need more than a URL are
written as maps:

```yaml
port: 8000
router-mode: least-loaded
workers:
  - http://10.0.0.1:8000
  - url: https://10.0.0.2:8000
    ca_file: /etc/fathom/ca.pem           # verify its certificate against this
    api_key_env: ENGINE_KEY               # send the key in this variable as a bearer token
    kv_events: tcp://10.0.0.2:5557        # where it publishes KV events
    kv_events_replay: tcp://10.0.0.2:5558 # where missed events are asked for
    kv_events_topic: kv                   # topic to subscribe to; "" is every topic
    role: decode                          # prefill, decode or both; shown on the admin pages
    labels: {zone: b}                     # shown on the admin pages
  - dns+http://engines.prod.svc:8000      # every address of this name, looked up periodically
```

Sources of workers (`dns+http(s)://`, `k8s://`, `k8s-pods://`, `k8s-pool://`, `etcd(s)://`, `file:///`;
[workers](workers.md#where-workers-come-from)) take the same keys, which then hold for all of their workers; event
endpoints are templates there: `tcp://*:5557` is this port on each worker's host, `tcp://*:+1000` the worker's own port
plus 1000.

Each current address of a `dns+http://` name is a separate
worker, with the address in its URL and the name in `Host` and for its certificate. On Kubernetes the name is that of a headless Service
(`clusterIP: None`): behind any other name each request reaches any pod, and no cache can be tracked.
`POST /workers` takes such a name as well: it answers 202 with an id, before the first lookup, and
`GET /workers` lists the names. `DELETE /workers/{id}` of a name also removes its workers. A single worker
that is deleted stays removed while the name has its address, or until the name is posted again.

Settings in this file take precedence over what the engine reports. These workers and those of `--worker-urls` are
one fleet; a URL that appears twice is an error. A worker that a source names too is one worker; what is written here
for its own URL counts first, field by field.
)";

std::string Code(std::string_view text) {
  return text.empty() ? std::string() : fmt::format("`{}`", text);
}

// A bar would end the table cell.
std::string Cell(std::string_view text) {
  std::string cell;
  for (const char c : text) cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return cell;
}

std::string FlagNames(const Option& option) {
  std::string names = Code(fmt::format("--{}", option.name));
  for (const std::string_view alias : option.aliases) {
    if (!alias.empty()) names += fmt::format(", `--{}`", alias);
  }
  return names;
}

std::string DynamoNames(const Option& option) {
  std::string names;
  for (const auto& [variable, unit] : option.dynamo) {
    if (variable.empty()) continue;
    if (!names.empty()) names += ", ";
    names += Code(variable);
    if (!unit.empty()) names += fmt::format(" (in {})", unit);
  }
  return names;
}

std::string DefaultOf(const Option& option) {
  const std::string text = option.secret() ? "" : FormatValue(option, DefaultValue(option));
  return text.empty() ? "none" : Code(text);
}

void AppendRow(std::string& page, const Option& option) {
  page += fmt::format("| {} | {} | {} | {} | {} | {} |\n", FlagNames(option),
                      Code(option.EnvironmentName()), DynamoNames(option), DefaultOf(option),
                      Cell(FormatRange(option)), Cell(option.help));
}

void AppendCommand(std::string& page, Command command) {
  page += fmt::format("\n## fathom {}\n\n{}\n", NameOf(command), SummaryOf(command));
  for (size_t i = 0; i < kOptionSections; ++i) {
    const auto section = static_cast<OptionSection>(i);
    bool first = true;
    for (const Option& option : Options()) {
      if (!option.BelongsTo(command) || option.section != section) continue;
      if (std::exchange(first, false)) {
        page += fmt::format(
            "\n### {}\n\n| option | environment | Dynamo | default | range | meaning |\n"
            "|---|---|---|---|---|---|\n",
            NameOf(section));
      }
      AppendRow(page, option);
    }
  }
}

}  // namespace

std::string ConfigurationPage() {
  std::string page(kIntroduction);
  for (const Command command : kCommands) AppendCommand(page, command);
  return page;
}

}  // namespace fathom
