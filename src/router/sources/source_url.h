// What does the URL of a source mean?
//
//   k8s://NAMESPACE/SERVICE:PORT         the endpoints of a Service
//   k8s-pods://NAMESPACE/SELECTOR:PORT   the pods that a label selector finds
//   k8s-pool://NAMESPACE/NAME            the pods and ports of an InferencePool
//   file:///PATH                         a list of workers in a file
//
// Names are checked by the rules of Kubernetes, so that a mistake is an error at the start and not
// a source that finds nothing. etcd:// has its own reader (io/etcd).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace fathom {

struct KubeServiceUrl {
  std::string ns;
  std::string service;
  std::string port;  // the name of the Service's port, or a number, as in the EndpointSlice

  static Result<KubeServiceUrl> Parse(std::string_view text);
};

struct KubePodsUrl {
  std::string ns;
  std::string selector;  // "app=vllm,tier in (gpu,big)"
  std::string port;      // the name of a container's port, or a number

  static Result<KubePodsUrl> Parse(std::string_view text);
};

struct KubePoolUrl {
  std::string ns;
  std::string name;

  static Result<KubePoolUrl> Parse(std::string_view text);
};

struct FileUrl {
  std::string path;  // absolute

  static Result<FileUrl> Parse(std::string_view text);
};

}  // namespace fathom
