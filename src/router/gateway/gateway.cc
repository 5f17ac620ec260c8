#include "router/gateway/gateway.h"

#include <fmt/format.h>

#include <cstring>

#include "base/secret.h"
#include "base/text.h"
#include "codec/request_target.h"
#include "router/gateway/api_error.h"
#include "router/gateway/exchange.h"
#include "router/gateway/openai_error.h"
#include "router/gateway/request_fields.h"

namespace fathom {
namespace {

constexpr Duration kHousekeeping = std::chrono::milliseconds(250);

// "000102...ff"
constexpr std::array<char, 512> kHexPairs = [] {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<char, 512> pairs{};
  for (size_t i = 0; i < 256; ++i) {
    pairs[2 * i] = kDigits[i / 16];
    pairs[2 * i + 1] = kDigits[i % 16];
  }
  return pairs;
}();

// Uploads (audio, images) are not JSON; only the engine reads their form fields.
bool IsForm(const RequestHead& head, const PassedRoute& route) {
  if (!route.forms) return false;
  const Header* const type = head.headers.Find(HeaderName::kContentType);
  return type != nullptr && EqualsIgnoreCase(type->value.substr(0, 10), "multipart/");
}

// vLLM's P2P connector takes the addresses of a transfer from the request's id.
bool SteersByRequestId(const RequestHead& head) {
  const Header* const id = head.headers.Find(HeaderName::kRequestId);
  if (id == nullptr) return false;
  return id->value.find("___prefill_addr_") != id->value.npos ||
         id->value.find("___decode_addr_") != id->value.npos;
}

Answer TransferRefused(AnswerForm form, std::string_view what, std::string_view param) {
  const std::string message = fmt::format(
      "{} steers transfers of KV cache between engines, which clients may not do here "
      "(--allow-transfer-fields)",
      what);
  return ApiError(form, 400, "transfer_field_refused", message, param);
}

}  // namespace

std::string_view RequestIdOf(const RequestHead& head, Random& random, std::array<char, 32>& room) {
  constexpr size_t kLongest = 128;
  const Header* const id = head.headers.Find(HeaderName::kRequestId);
  if (id != nullptr && !id->value.empty() && id->value.size() <= kLongest) return id->value;
  for (size_t i = 0; i < room.size(); i += 16) {
    uint64_t bits = random.Next();
    for (size_t j = 0; j < 16; j += 2, bits >>= 8) {
      std::memcpy(&room[i + j], &kHexPairs[2 * (bits & 255)], 2);
    }
  }
  return {room.data(), room.size()};
}

Gateway::Gateway(GatewayContext& context, Loop& loop, PageDesk& desk, uint64_t seed)
    : context_(context),
      loop_(loop),
      admin_(context, loop, desk, context.options.main_listener, AdminPages::Urls::kHidden),
      pool_(loop, context.options.pool_size, context.options.pool_idle_timeout),
      router_(context, loop, seed),
      ids_(RandomSecret()) {
  pool_.OnLost([this](WorkerId worker) { DoubtWorker(worker); });
}

// The pool closes idle connections before workers do, so their process has probably ended.
void Gateway::DoubtWorker(WorkerId id) {
  if (context_.sizes == nullptr) return;
  const auto fleet = context_.fleet.Current();
  const Member* const member = fleet->Find(id);
  if (member != nullptr) context_.sizes->Doubt(*member->worker, loop_.now());
}

Gateway::~Gateway() = default;

Task<void> Gateway::Handle(ServerConnection& connection) {
  const std::string_view path = RequestTarget::Of(connection.head().target).path;
  const PassedRoute* const route = context_.routes.Find(path);
  if (HasDotSegments(path) || (route != nullptr && route->open() && !HasOneReading(path))) {
    connection.CloseAfterwards();
    auto refusing = connection.Respond(
        Refuse({400,
                "the path can be read in different ways: send it without dot segments, empty "
                "segments, backslashes and encoded slashes"}));
    co_await refusing;
    co_return;
  }
  if (route == nullptr) {
    auto answering = admin_.Serve(connection, path);
    co_await answering;
    co_return;
  }
  auto passing = Pass(connection, *route);
  co_await passing;
}

Task<void> Gateway::Pass(ServerConnection& connection, const PassedRoute& route) {
  const RequestHead& head = connection.head();
  std::optional<Answer> refusal = RefuseAtTheDoor(connection, route);
  if (!refusal) {
    std::optional<std::string_view> body = connection.BufferedBody();
    if (!body) {
      auto reading = ReadBody(connection);
      const auto read = co_await reading;
      if (read) body = *read;
      if (!read && read.error().status == 0) co_return;
      if (!read) refusal = RefuseAs(route.form, read.error());
    }
    if (body) {
      auto fields = ReadFields(head, route, *body);
      if (fields) {
        Exchange exchange(*this, connection, route, *fields, *body);
        auto running = exchange.Run();
        co_await running;
        co_return;
      }
      refusal = std::move(fields).error();
    }
  }
  context_.metrics.CountRequest(route.route, refusal->status);
  std::array<char, 32> room;
  refusal->headers.emplace_back("x-request-id", std::string(RequestIdOf(head, ids_, room)));
  auto responding = connection.Respond(*refusal);
  co_await responding;
}

// Checks that do not need the body.
std::optional<Answer> Gateway::RefuseAtTheDoor(ServerConnection& connection,
                                               const PassedRoute& route) {
  const RequestHead& head = connection.head();
  if (!route.Allows(head.method)) return MethodNotAllowed(route.methods);
  const AnswerForm form = route.form;
  if (context_.draining.load(std::memory_order_relaxed)) {
    context_.metrics.rejected_draining.Add();
    connection.CloseAfterwards();
    return ApiError(form, 503, "draining", "this router is shutting down; send the request again");
  }
  if (!context_.api_keys.Admits(head)) {
    return ApiError(form, 401, "invalid_api_key",
                    form == AnswerForm::kMessages
                        ? "a valid API key is required in x-api-key or Authorization"
                        : "a valid API key is required in Authorization");
  }
  if (!context_.options.allow_transfer_fields && SteersByRequestId(head)) {
    return TransferRefused(form, "this x-request-id", "x-request-id");
  }
  return std::nullopt;
}

std::expected<RequestFields, Answer> Gateway::ReadFields(const RequestHead& head,
                                                         const PassedRoute& route,
                                                         std::string_view body) const {
  if (IsForm(head, route) || (body.empty() && route.bodiless)) return RequestFields();
  auto fields = ReadRequestFields(body);
  if (!fields) {
    return std::unexpected(
        ApiError(route.form, 400, "invalid_json",
                 "the request body is not a valid JSON object: " + fields.error().what));
  }
  if (!fields->model_problem.empty()) {
    return std::unexpected(
        ApiError(route.form, 400, "invalid_model", fields->model_problem, "model"));
  }
  if (!context_.options.allow_transfer_fields && !fields->transfer_field.empty()) {
    return std::unexpected(TransferRefused(route.form, fmt::format("'{}'", fields->transfer_field),
                                           fields->transfer_field));
  }
  return *std::move(fields);
}

// A drain waits for bodies that are being received.
Task<std::expected<std::string_view, RequestProblem>> Gateway::ReadBody(
    ServerConnection& connection) {
  context_.reading.fetch_add(1, std::memory_order_relaxed);
  auto reading = connection.ReadBody();
  const auto read = co_await reading;
  context_.reading.fetch_sub(1, std::memory_order_relaxed);
  co_return read;
}

Answer Gateway::Refuse(const RequestProblem& problem) {
  return RefuseAs(AnswerForm::kOther, problem);
}

Answer Gateway::RefuseAs(AnswerForm form, const RequestProblem& problem) {
  const std::string_view code = problem.status == 413   ? "request_too_large"
                                : problem.status == 408 ? "request_timeout"
                                                        : "bad_request";
  return ApiError(form, problem.status, code, problem.what);
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
    // Room also appears with time: the estimated prefill of an answer that is not streamed expires
    // silently.
    context_.dispatch.Wake();
  }
}

}  // namespace fathom
