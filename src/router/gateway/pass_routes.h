// Which requests are passed to workers?
//
// Those of inference, and those that the operator adds. Engines have more routes under /v1/ and
// beside it, which change them (adapters, weights, caches) or show their state; clients must not
// reach these.
//
// Threads  Any: immutable.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "router/gateway/early_end.h"
#include "router/gateway/gateway_metrics.h"

namespace fathom {

struct PassedRoute {
  // Each segment literally, except {id}, which stands for any one, and * at the end, which stands
  // for one or more.
  std::string_view pattern;
  std::string_view methods = "POST";  // separated by ", "
  Route route = Route::kOther;
  bool forms = false;     // also multipart bodies, which only the engine reads
  bool bodiless = false;  // the body may be missing
  AnswerForm form = AnswerForm::kOther;

  bool Allows(std::string_view method) const;
  // The client chooses a part of the path.
  bool open() const { return pattern.find_first_of("*{") != pattern.npos; }
};

class PassRoutes {
 public:
  // `more` are paths that Check() accepts; they are passed with every method.
  explicit PassRoutes(std::vector<std::string> more = {});
  PassRoutes(const PassRoutes&) = delete;
  PassRoutes& operator=(const PassRoutes&) = delete;

  // "/v1/files", or with everything below it: "/v1/files/*".
  static Result<void> Check(std::string_view path);

  // nullptr: the path is not passed. The router's own pages never are.
  const PassedRoute* Find(std::string_view path) const;

 private:
  const std::vector<std::string> texts_;
  std::vector<PassedRoute> more_;
};

}  // namespace fathom
