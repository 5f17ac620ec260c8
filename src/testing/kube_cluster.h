// A real Kubernetes API server for a test, where the script kube-up is found: by the variable
// KUBE_UP, or on PATH.
//
//   if (!KubeCluster::Found()) GTEST_SKIP() << KubeCluster::kMissing;
//   KubeCluster cluster;
//   cluster.Send("POST", "/api/v1/namespaces/default/pods", body);
//
// The servers run in a folder of their own, which goes with them.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/check.h"
#include "codec/json.h"

namespace fathom {

class KubeCluster {
 public:
  static constexpr const char* kMissing =
      "no kube-up: set KUBE_UP to its path to run this against a real API server";

  static bool Found() {
    return std::getenv("KUBE_UP") != nullptr || std::system("command -v kube-up >/dev/null") == 0;
  }

  KubeCluster() {
    char name[] = "/tmp/fathom_kube_cluster.XXXXXX";
    folder_ = ::mkdtemp(name);
    const auto about =
        Json::Parse(Output(Tool() + " --dir " + folder() + " 2>" + folder_ + "/log"));
    CHECK(about.has_value());
    about_ = *about;
  }
  ~KubeCluster() {
    Output(Tool() + " --stop " + folder() + " --purge 2>&1");
    std::filesystem::remove_all(folder_);
  }
  KubeCluster(const KubeCluster&) = delete;
  KubeCluster& operator=(const KubeCluster&) = delete;

  // "server", "kubeconfig", "restricted_user" and others: as kube-up prints them.
  std::string About(std::string_view key) const { return *about_.Find(key)->string(); }
  std::string folder() const { return folder_ + "/kube"; }

  // As the administrator; the answer.
  std::string Send(const std::string& method, const std::string& path, const std::string& body,
                   const std::string& type = "application/json") const {
    const std::string file = folder_ + "/body";
    std::ofstream(file) << body;
    return Output(
        fmt::format("curl -sS --cacert {} -H 'Authorization: Bearer {}' -X {} "
                    "-H 'Content-Type: {}' --data-binary @{} '{}{}'",
                    About("ca"), About("admin_token"), method, type, file, About("server"), path));
  }

  // As a crash ends it.
  void Kill() const { Output(Tool() + " --stop-api " + folder() + " --grace 0 2>&1"); }
  void Revive() const { Output(Tool() + " --start-api " + folder() + " 2>&1"); }

 private:
  static std::string Tool() {
    const char* const path = std::getenv("KUBE_UP");
    return path == nullptr ? "kube-up" : path;
  }
  static std::string Output(const std::string& command) {
    std::string out;
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    CHECK(pipe != nullptr);
    char part[4096];
    for (size_t n; (n = std::fread(part, 1, sizeof(part), pipe)) > 0;) out.append(part, n);
    ::pclose(pipe);
    return out;
  }

  std::string folder_;
  Json about_;
};

}  // namespace fathom
