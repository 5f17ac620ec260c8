#include "gateway/gateway.h"

#include "base/text.h"
#include "gateway/exchange.h"
#include "gateway/openai_error.h"
#include "gateway/request_fields.h"

namespace fathom {
namespace {

constexpr Duration kHousekeeping = std::chrono::milliseconds(250);

Route RouteOf(std::string_view path) {
  if (path == "/v1/chat/completions") return Route::kChat;
  if (path == "/v1/completions") return Route::kCompletions;
  if (path == "/v1/embeddings") return Route::kEmbeddings;
  if (path == "/v1/responses") return Route::kResponses;
  return Route::kOther;
}

std::string_view PathOf(const RequestHead& head) {
  const std::string_view target = OriginForm(head.target);
  return target.substr(0, target.find('?'));
}

// Uploads (audio, images) are not JSON; their form fields are the engine's affair.
bool IsForm(const RequestHead& head) {
  const Header* const type = head.headers.Find(HeaderName::kContentType);
  return type != nullptr && EqualsIgnoreCase(type->value.substr(0, 10), "multipart/");
}

}  // namespace

std::string_view OriginForm(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    const size_t slash = target.find('/', scheme.size());
    return slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  return target;
}

Gateway::Gateway(GatewayContext& context, Loop& loop, uint64_t seed)
    : context_(context),
      loop_(loop),
      admin_(context),
      pool_(loop, context.options.pool_size, context.options.pool_idle_timeout),
      chooser_(context.options.router_mode, seed, context.turn),
      ids_(seed ^ 0x5eed1d5u),
      fleet_(context.fleet) {}

Gateway::~Gateway() = default;

Task<void> Gateway::Handle(ServerConnection& connection) {
  const RequestHead& head = connection.head();
  const std::string_view path = PathOf(head);
  if (head.method == "POST" && path.starts_with("/v1/")) {
    auto proxying = Proxy(connection);
    co_await proxying;
    co_return;
  }
  std::string body;
  if (head.framing != BodyFraming::kNone) {
    auto reading = connection.ReadBody();
    const auto read = co_await reading;
    if (!read) {
      if (read.error().status == 0) co_return;
      auto refusing = Own(connection, Refuse(read.error()));
      co_await refusing;
      co_return;
    }
    body = *read;
  }
  const AdminPages::Scope scope =
      context_.options.admin_elsewhere ? AdminPages::Scope::kPublic : AdminPages::Scope::kAll;
  auto answering = Own(connection, admin_.Respond(head, path, body, scope));
  co_await answering;
}

Task<void> Gateway::Own(ServerConnection& connection, Answer answer) {
  context_.metrics.CountRequest(Route::kOwn, answer.status);
  auto responding = connection.Respond(answer);
  co_await responding;
}

Answer Gateway::Refuse(const RequestProblem& problem) {
  const std::string_view code = problem.status == 413   ? "request_too_large"
                                : problem.status == 408 ? "request_timeout"
                                                        : "bad_request";
  return OpenAiError(problem.status, code, problem.what);
}

Task<void> Gateway::Proxy(ServerConnection& connection) {
  const RequestHead& head = connection.head();
  const Route route = RouteOf(PathOf(head));
  Answer refusal;
  RequestFields fields;
  std::string_view body;
  if (context_.draining.load(std::memory_order_relaxed)) {
    context_.metrics.rejected_draining.Add();
    connection.CloseAfterwards();
    refusal = OpenAiError(503, "draining", "this router is shutting down; send the request again");
  } else if (!context_.api_keys.Admits(head)) {
    refusal = OpenAiError(401, "invalid_api_key", "a valid API key is required in Authorization");
  } else {
    auto reading = connection.ReadBody();
    const auto read = co_await reading;
    if (!read) {
      if (read.error().status == 0) co_return;
      refusal = Refuse(read.error());
    } else {
      body = *read;
      auto parsed = IsForm(head) ? Result<RequestFields>(RequestFields()) : ReadRequestFields(body);
      if (parsed) {
        fields = *std::move(parsed);
        Exchange exchange(*this, connection, route, fields, body);
        auto running = exchange.Run();
        co_await running;
        co_return;
      }
      refusal = OpenAiError(
          400, "invalid_json",
          "the request body is not the JSON object it should be: " + parsed.error().what);
    }
  }
  context_.metrics.CountRequest(route, refusal.status);
  auto responding = connection.Respond(refusal);
  co_await responding;
}

Task<void> Gateway::Housekeep() {
  for (;;) {
    co_await loop_.Sleep(kHousekeeping);
    for (Exchange* exchange = exchanges_; exchange != nullptr;) {
      Exchange* const next = exchange->next();
      exchange->GiveUpIfSilent();
      exchange = next;
    }
    pool_.Sweep();
  }
}

}  // namespace fathom
