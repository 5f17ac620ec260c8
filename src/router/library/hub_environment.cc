#include "router/library/hub_environment.h"

#include <algorithm>
#include <string_view>

#include "base/file.h"
#include "base/text.h"

namespace fathom {
namespace {

class EnvironmentReader {
 public:
  explicit EnvironmentReader(const HubEnvironment::Variable& variable) : variable_(variable) {}

  std::string Text(const std::string& name) const { return variable_(name).value_or(""); }

  // A path; "~/" is the home folder.
  std::string Path(const std::string& name) const {
    std::string path = Text(name);
    if (path.starts_with("~/")) path = Text("HOME") + path.substr(1);
    return path.starts_with('/') ? path : "";
  }

  std::string Below(const std::string& name, std::string_view path) const {
    const std::string folder = Path(name);
    return folder.empty() ? "" : folder + std::string(path);
  }

  bool Flag(const std::string& name) const {
    const std::string value = Text(name);
    return std::ranges::any_of(std::vector<std::string_view>{"1", "on", "yes", "true"},
                               [&](std::string_view yes) { return EqualsIgnoreCase(value, yes); });
  }

 private:
  const HubEnvironment::Variable& variable_;
};

std::string FirstOf(const std::vector<std::string>& values) {
  const auto first = std::ranges::find_if(values, [](const auto& v) { return !v.empty(); });
  return first == values.end() ? "" : *first;
}

// A token becomes a header's value.
std::string Clean(std::string_view token) {
  const std::string_view trimmed = Trim(token);
  const bool fine = std::ranges::all_of(trimmed, [](char c) { return c > ' ' && c < 0x7f; });
  return fine ? std::string(trimmed) : "";
}

std::string TokenOf(const EnvironmentReader& variables) {
  for (const char* const name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    if (std::string token = Clean(variables.Text(name)); !token.empty()) return token;
  }
  const std::string file =
      FirstOf({variables.Path("HF_TOKEN_PATH"), variables.Below("HF_HOME", "/token"),
               variables.Below("XDG_CACHE_HOME", "/huggingface/token"),
               variables.Below("HOME", "/.cache/huggingface/token")});
  const auto text = ReadFile(file);
  return text ? Clean(*text) : "";
}

}  // namespace

HubEnvironment HubEnvironment::Of(const Variable& variable) {
  const EnvironmentReader variables(variable);
  HubEnvironment hub;
  for (const std::string& folder :
       {variables.Path("HF_HUB_CACHE"), variables.Path("HUGGINGFACE_HUB_CACHE"),
        variables.Below("HF_HOME", "/hub"), variables.Below("XDG_CACHE_HOME", "/huggingface/hub"),
        variables.Below("HOME", "/.cache/huggingface/hub")}) {
    if (!folder.empty() && std::ranges::find(hub.caches, folder) == hub.caches.end()) {
      hub.caches.push_back(folder);
    }
  }
  if (std::string endpoint = variables.Text("HF_ENDPOINT"); !endpoint.empty()) {
    hub.endpoint = std::move(endpoint);
  }
  hub.token = TokenOf(variables);
  hub.ca_file = variables.Path("REQUESTS_CA_BUNDLE");
  hub.offline = variables.Flag("HF_HUB_OFFLINE");
  hub.proxied = !FirstOf({variables.Text("HTTPS_PROXY"), variables.Text("https_proxy"),
                          variables.Text("ALL_PROXY"), variables.Text("all_proxy")})
                     .empty();
  return hub;
}

}  // namespace fathom
