#include "router/gateway/pass_routes.h"

#include <algorithm>

#include "base/text.h"
#include "codec/header_list.h"
#include "codec/request_target.h"

namespace fathom {
namespace {

// HEAD is missing: its answers have no body, whatever their headers say.
constexpr std::string_view kEveryMethod = "GET, POST, PUT, PATCH, DELETE";

constexpr PassedRoute kInference[] = {
    {.pattern = "/v1/chat/completions", .route = Route::kChat, .form = AnswerForm::kCompletion},
    {.pattern = "/v1/completions", .route = Route::kCompletions, .form = AnswerForm::kCompletion},
    {.pattern = "/v1/embeddings", .route = Route::kEmbeddings},
    {.pattern = "/v1/responses", .route = Route::kResponses, .form = AnswerForm::kResponses},
    {.pattern = "/v1/responses/{id}",
     .methods = "GET, DELETE",
     .bodiless = true,
     .form = AnswerForm::kResponses},
    {.pattern = "/v1/responses/{id}/cancel", .bodiless = true, .form = AnswerForm::kResponses},
    {.pattern = "/v1/messages", .route = Route::kMessages, .form = AnswerForm::kMessages},
    {.pattern = "/v1/messages/count_tokens",
     .route = Route::kCountTokens,
     .form = AnswerForm::kMessages},
    {.pattern = "/v1/rerank", .route = Route::kRerank},
    {.pattern = "/rerank", .route = Route::kRerank},
    {.pattern = "/v1/score", .route = Route::kScore},
    {.pattern = "/score", .route = Route::kScore},
    {.pattern = "/classify"},
    {.pattern = "/pooling"},
    {.pattern = "/v1/audio/*", .forms = true},
    {.pattern = "/v1/images/*", .forms = true},
    {.pattern = "/tokenize"},
    {.pattern = "/detokenize"},
    {.pattern = "/generate", .route = Route::kGenerate, .form = AnswerForm::kGenerate},
    {.pattern = "/inference/v1/generate",
     .route = Route::kInferenceGenerate,
     .form = AnswerForm::kCompletion},
};

// The router's own; a path with a slash at the end stands for everything below it.
constexpr std::string_view kOwnPages[] = {"/live",      "/ready",      "/health",  "/metrics",
                                          "/v1/models", "/v1/models/", "/workers", "/workers/",
                                          "/debug/",    "/ui",         "/ui/"};

bool IsOwnPage(std::string_view path) {
  return std::ranges::any_of(kOwnPages, [&](std::string_view page) {
    return page.ends_with('/') ? path.starts_with(page) : path == page;
  });
}

// Takes the text up to the next slash.
std::string_view TakeSegment(std::string_view& path) {
  path.remove_prefix(path.starts_with('/') ? 1 : 0);
  const std::string_view segment = path.substr(0, path.find('/'));
  path.remove_prefix(segment.size());
  return segment;
}

bool FitsOpenPattern(std::string_view path, std::string_view pattern) {
  while (!pattern.empty()) {
    const std::string_view wanted = TakeSegment(pattern);
    const std::string_view segment = TakeSegment(path);
    if (wanted == "*") return !segment.empty();
    if (wanted == "{id}" ? segment.empty() : segment != wanted) return false;
  }
  return path.empty();
}

bool Fits(std::string_view path, const PassedRoute& route) {
  return path == route.pattern || (route.open() && FitsOpenPattern(path, route.pattern));
}

const PassedRoute* FindIn(std::span<const PassedRoute> routes, std::string_view path) {
  for (const PassedRoute& route : routes) {
    if (Fits(path, route)) return &route;
  }
  return nullptr;
}

}  // namespace

bool PassedRoute::Allows(std::string_view method) const {
  bool found = false;
  ForEachElement(methods, [&](std::string_view one) { found = found || one == method; });
  return found;
}

PassRoutes::PassRoutes(std::vector<std::string> more) : texts_(std::move(more)) {
  for (const std::string& text : texts_) {
    more_.push_back({.pattern = text, .methods = kEveryMethod, .forms = true, .bodiless = true});
  }
}

Result<void> PassRoutes::Check(std::string_view path) {
  const std::string_view literal = path.ends_with("/*") ? path.substr(0, path.size() - 2) : path;
  const bool plain = literal.find_first_of("*?{}# ") == literal.npos && HasOneReading(literal);
  if (!path.starts_with('/') || !plain) {
    return Fail(Blame::kCaller,
                "pass-routes: '{}' is not a path; write /v1/files, or /v1/files/* for everything "
                "below it",
                path.substr(0, 100));
  }
  if (IsOwnPage(literal) || IsOwnPage(std::string(literal) + "/")) {
    return Fail(Blame::kCaller, "pass-routes: {} is a page of the router itself", path);
  }
  return {};
}

const PassedRoute* PassRoutes::Find(std::string_view path) const {
  if (const PassedRoute* const found = FindIn(kInference, path)) return found;
  if (more_.empty() || IsOwnPage(path)) return nullptr;
  return FindIn(more_, path);
}

}  // namespace fathom
