// Where does this machine keep the files of models, and how is the hub reached?
//
// The variables are those of Hugging Face's own tools: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE,
// HF_HOME, XDG_CACHE_HOME and HOME for the cache; HF_ENDPOINT, HF_TOKEN, HUGGING_FACE_HUB_TOKEN,
// HF_TOKEN_PATH, HF_HUB_OFFLINE and REQUESTS_CA_BUNDLE for the hub. Proxies are not supported.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fathom {

struct HubEnvironment {
  // The value of a variable; empty is as good as none.
  using Variable = std::function<std::optional<std::string>(const std::string& name)>;

  static HubEnvironment Of(const Variable& variable);

  std::vector<std::string> caches;  // in which files are looked for; the first is written to
  std::string endpoint = "https://huggingface.co";
  std::string token = {};  // never logged
  std::string ca_file = {};
  bool offline = false;
  bool proxied = false;  // a proxy is set, which the router does not use
};

}  // namespace fathom
