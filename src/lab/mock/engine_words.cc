#include "lab/mock/engine_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "codec/json.h"
#include "codec/json_scan.h"
#include "lab/mock/completion_answer.h"
#include "lab/mock/python_words.h"

namespace fathom {
namespace {

constexpr std::string_view kOnlyJson = "Unsupported Media Type: Only 'application/json' is allowed";
constexpr size_t kMostProblems = 10;  // that vLLM lists
constexpr size_t kMostInput = 200;    // characters of a text that it shows

// Where SGLang's image has the function of a route; its messages name the place.
struct SglangPlace {
  MockRoute route;
  int line;
  std::string_view function;
};
constexpr std::array<SglangPlace, 6> kSglangPlaces = {
    {{MockRoute::kCompletions, 1860, "openai_v1_completions"},
     {MockRoute::kChat, 1870, "openai_v1_chat_completions"},
     {MockRoute::kEmbeddings, 1882, "openai_v1_embeddings"},
     {MockRoute::kTokenize, 1906, "openai_v1_tokenize"},
     {MockRoute::kDetokenize, 1924, "openai_v1_detokenize"},
     {MockRoute::kResponses, 2066, "v1_responses_request"}}};

struct NamedRoute {
  std::string_view path;
  MockRoute route;
};
constexpr std::array<NamedRoute, 7> kRoutes = {
    {{"/v1/completions", MockRoute::kCompletions},
     {"/v1/chat/completions", MockRoute::kChat},
     {"/v1/responses", MockRoute::kResponses},
     {"/v1/messages", MockRoute::kMessages},
     {"/v1/messages/count_tokens", MockRoute::kCountTokens},
     {"/v1/embeddings", MockRoute::kEmbeddings},
     {"/tokenize", MockRoute::kTokenize}}};

std::string_view PathOfRoute(MockRoute route) {
  for (const NamedRoute& known : kRoutes) {
    if (known.route == route) return known.path;
  }
  return "/detokenize";
}

bool IsMessages(MockRoute route) {
  return route == MockRoute::kMessages || route == MockRoute::kCountTokens;
}

std::string AnthropicBody(std::string_view type, std::string_view message) {
  JsonWriter w;
  w.BeginObject().Key("type").String("error").Key("error").BeginObject();
  w.Key("type").String(type).Key("message").String(message).EndObject().EndObject();
  return w.Take();
}

// SGLang leaves `param` out where TensorRT-LLM has a null.
std::string FlatBody(std::string_view type, std::string_view message, int status, bool param) {
  JsonWriter w;
  w.BeginObject().Key("object").String("error").Key("message").String(message);
  w.Key("type").String(type);
  if (param) w.Key("param").Null();
  w.Key("code").Int(status).EndObject();
  return w.Take();
}

// repr() of what json.loads() makes of a value.
std::string PythonValue(std::string_view raw) {
  if (raw == "true") return "True";
  if (raw == "false") return "False";
  if (raw == "null") return "None";
  if (raw.starts_with('"')) return PythonText(JsonText(raw).value_or(""));
  std::string out(1, raw.front());
  if (raw.starts_with('[')) {
    JsonElements elements(raw);
    while (const auto element = elements.Next()) {
      out += (out.size() > 1 ? ", " : "") + PythonValue(*element);
    }
    return out += ']';
  }
  if (!raw.starts_with('{')) {
    const bool whole = raw.find_first_of(".eE") == raw.npos;
    return whole ? std::string(raw) : PythonFloat(std::strtod(std::string(raw).c_str(), nullptr));
  }
  JsonScanner members(raw);
  for (auto member = members.Next(); member && *member; member = members.Next()) {
    const auto key = JsonText(fmt::format("\"{}\"", (*member)->key));
    out += (out.size() > 1 ? ", " : "") + PythonText(key.value_or("")) + ": ";
    out += PythonValue((*member)->value);
  }
  return out += '}';
}

size_t CountItems(std::string_view raw) {
  size_t items = 0;
  if (raw.starts_with('[')) {
    JsonElements elements(raw);
    while (elements.Next()) ++items;
    return items;
  }
  std::vector<std::string_view> keys;
  JsonScanner members(raw);
  for (auto member = members.Next(); member && *member; member = members.Next()) {
    keys.push_back((*member)->key);
  }
  std::ranges::sort(keys);
  return static_cast<size_t>(std::ranges::unique(keys).begin() - keys.begin());
}

// vLLM shows the size of what could be large.
std::string Summary(std::string_view raw) {
  if (raw.starts_with('[')) return fmt::format("'<list of {} items>'", CountItems(raw));
  if (raw.starts_with('{')) return fmt::format("'<dict of {} items>'", CountItems(raw));
  if (!raw.starts_with('"')) return PythonText(PythonValue(raw));
  std::string text = JsonText(raw).value_or("");
  if (text.size() > kMostInput) text = text.substr(0, kMostInput) + "...[truncated]";
  return PythonText(text);
}

std::string VllmPlace(const FieldProblem& problem) {
  return problem.place.empty() ? "body" : fmt::format("body.{}", fmt::join(problem.place, "."));
}

std::string VllmProblem(const FieldProblem& problem) {
  std::string out =
      fmt::format("{{'type': '{}', 'loc': '{}', 'msg': {}, 'input': {}", problem.type,
                  VllmPlace(problem), PythonText(problem.message),
                  problem.input.empty() ? "'<dict of 0 items>'" : Summary(problem.input));
  if (!problem.context.empty()) out += ", 'ctx': " + problem.context;
  return out + "}";
}

// ('body', 'prompt'), ('body', 'messages', 0), ('body',)
std::string PythonPlace(const FieldProblem& problem) {
  std::string out = "('body',";
  for (const std::string& step : problem.place) {
    const bool number = step.find_first_not_of("0123456789") == std::string::npos;
    out += out.ends_with(",") && out != "('body'," ? " " : out == "('body'," ? " " : "";
    out += (number ? step : PythonText(step)) + ",";
  }
  if (!problem.place.empty()) out.pop_back();
  return out + ")";
}

std::string PythonProblem(const FieldProblem& problem) {
  std::string out = fmt::format("{{'type': '{}', 'loc': {}, 'msg': {}, 'input': {}", problem.type,
                                PythonPlace(problem), PythonText(problem.message),
                                problem.input.empty() ? "{}" : PythonValue(problem.input));
  if (!problem.context.empty()) out += ", 'ctx': " + problem.context;
  return out + "}";
}

std::string Heading(size_t problems) {
  return fmt::format("{} validation {}:\n", problems, problems == 1 ? "error" : "errors");
}

Answer VllmForm(const std::vector<FieldProblem>& problems) {
  std::string message = Heading(problems.size());
  for (size_t i = 0; i < std::min(problems.size(), kMostProblems); ++i) {
    message += "  " + VllmProblem(problems[i]) + "\n";
  }
  if (problems.size() > kMostProblems) {
    message += fmt::format("  ...and {} more errors\n", problems.size() - kMostProblems);
  }
  message.pop_back();
  const std::string param(problems.front().setting.empty() ? VllmPlace(problems.front())
                                                           : problems.front().setting);
  return {.status = 400, .body = ErrorBody(message, "Bad Request", param, 400)};
}

// As FastAPI writes it, with the place of the function.
std::string PythonForm(MockRoute route, const std::vector<FieldProblem>& problems,
                       const SglangPlace* place) {
  std::string message = Heading(problems.size());
  for (const FieldProblem& problem : problems) message += "  " + PythonProblem(problem) + "\n";
  if (place == nullptr) {
    message.pop_back();
    return message;
  }
  return message +
         fmt::format(
             "\n  File \"/sgl-workspace/sglang/python/sglang/srt/entrypoints/http_server.py\", "
             "line {}, in {}\n    POST {}",
             place->line, place->function, PathOfRoute(route));
}

Answer SglangFormText(MockRoute route, std::string message) {
  if (route == MockRoute::kResponses) {
    return {.status = 400, .body = ErrorBody(message, "Bad Request", {}, 400)};
  }
  return {.status = 400, .body = FlatBody("Bad Request", message, 400, false)};
}

Answer SglangForm(MockRoute route, const std::vector<FieldProblem>& problems) {
  if (IsMessages(route)) {
    std::string message;
    for (const FieldProblem& problem : problems) {
      message += message.empty() ? "" : "; ";
      if (!problem.place.empty()) message += fmt::format("{}: ", fmt::join(problem.place, "."));
      message += problem.message;
    }
    return {.status = 400, .body = AnthropicBody("invalid_request_error", message)};
  }
  const auto* place = std::ranges::find(kSglangPlaces, route, &SglangPlace::route);
  std::string listed;
  for (const FieldProblem& problem : problems) {
    listed += (listed.empty() ? "" : ", ") + PythonProblem(problem);
  }
  const bool known = place != kSglangPlaces.end();
  return SglangFormText(
      route, fmt::format("{} [{}]", PythonForm(route, problems, known ? place : nullptr), listed));
}

}  // namespace

MockRoute RouteOf(MockedEngine engine, std::string_view path) {
  const bool sglang = engine == MockedEngine::kSglang;
  if (sglang && (path == "/v1/tokenize" || path == "/v1/detokenize")) path.remove_prefix(3);
  const bool has_tokens = engine != MockedEngine::kTrtllm;
  if (path == "/detokenize" && has_tokens) return MockRoute::kDetokenize;
  if (path == "/generate" && sglang) return MockRoute::kGenerate;
  if (path == "/inference/v1/generate" && engine == MockedEngine::kVllm) {
    return MockRoute::kGenerate;
  }
  for (const NamedRoute& known : kRoutes) {
    if (known.path != path) continue;
    return known.route == MockRoute::kTokenize && !has_tokens ? MockRoute::kOther : known.route;
  }
  return MockRoute::kOther;
}

Answer RefusalAnswer(MockedEngine engine, MockRoute route, const Refusal& refusal) {
  const int status = refusal.status;
  switch (engine) {
    case MockedEngine::kVllm:
      if (IsMessages(route)) {
        return {.status = status, .body = AnthropicBody(refusal.type, refusal.message)};
      }
      return {.status = status,
              .body = ErrorBody(refusal.message, refusal.type, refusal.param, status)};
    case MockedEngine::kSglang:
      if (IsMessages(route)) {
        const bool missing = status == 404;
        return {.status = status,
                .body = AnthropicBody(status >= 500 ? "api_error"
                                      : missing     ? "not_found_error"
                                                    : "invalid_request_error",
                                      refusal.message)};
      }
      if (route == MockRoute::kGenerate) {
        JsonWriter w;
        w.BeginObject().Key("error").BeginObject().Key("message").String(refusal.message);
        w.EndObject().EndObject();
        return {.status = status, .body = w.Take()};
      }
      if (route == MockRoute::kResponses) {
        return {.status = status,
                .body = ErrorBody(refusal.message, "invalid_request_error", refusal.param, status)};
      }
      return {.status = status, .body = FlatBody(refusal.type, refusal.message, status, false)};
    case MockedEngine::kTrtllm:
      if (IsMessages(route)) {
        return {.status = status,
                .body = AnthropicBody(status >= 500 ? "api_error" : "invalid_request_error",
                                      refusal.message)};
      }
      break;
  }
  return {.status = status, .body = FlatBody(refusal.type, refusal.message, status, true)};
}

Answer FormAnswer(MockedEngine engine, MockRoute route, const std::vector<FieldProblem>& problems) {
  switch (engine) {
    case MockedEngine::kVllm:
      return VllmForm(problems);
    case MockedEngine::kSglang:
      return SglangForm(route, problems);
    case MockedEngine::kTrtllm:
      if (IsMessages(route)) {
        return {
            .status = 400,
            .body = AnthropicBody("invalid_request_error", PythonForm(route, problems, nullptr))};
      }
      break;
  }
  JsonWriter w;
  w.BeginObject().Key("error").String(PythonForm(route, problems, nullptr)).EndObject();
  return {.status = 400, .body = w.Take()};
}

Answer MediaTypeAnswer(MockedEngine engine, MockRoute route) {
  if (engine == MockedEngine::kVllm) {
    return {.status = 400,
            .body = ErrorBody(fmt::format("1 validation error:\n  {}", kOnlyJson), "Bad Request",
                              {}, 400)};
  }
  if (engine == MockedEngine::kTrtllm) {
    // Not read as JSON, it is a text, which is no object.
    return FormAnswer(engine, route,
                      {{.type = "model_attributes_type",
                        .place = {},
                        .message = "Input should be a valid dictionary or object to extract fields "
                                   "from",
                        .input = "\"\""}});
  }
  if (IsMessages(route)) {
    return {.status = 400,
            .body = AnthropicBody("invalid_request_error",
                                  fmt::format("header.content-type: {}", kOnlyJson))};
  }
  const std::string problem = fmt::format(
      "{{'loc': ['header', 'content-type'], 'msg': \"{}\", 'type': 'value_error'}}", kOnlyJson);
  return SglangFormText(route, fmt::format("1 validation error:\n  {0} [{0}]", problem));
}

Answer NotFoundAnswer() { return {.status = 404, .body = R"({"detail":"Not Found"})"}; }

Answer MethodNotAllowedAnswer(std::string_view allowed) {
  return {.status = 405,
          .body = R"({"detail":"Method Not Allowed"})",
          .headers = {{"allow", std::string(allowed)}}};
}

}  // namespace fathom
