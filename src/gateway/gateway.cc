#include "gateway/gateway.h"

#include <cstring>

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

Gateway::Gateway(GatewayContext& context, Loop& loop, uint64_t seed)
    : context_(context),
      loop_(loop),
      admin_(context, loop),
      pool_(loop, context.options.pool_size, context.options.pool_idle_timeout),
      router_(context, loop, seed),
      ids_(seed ^ 0x5eed1d5u) {}

Gateway::~Gateway() = default;

Task<void> Gateway::Handle(ServerConnection& connection) {
  const RequestHead& head = connection.head();
  const std::string_view path = PathOf(head);
  if (head.method != "POST" || !path.starts_with("/v1/")) {
    const AdminPages::Scope scope =
        context_.options.admin_elsewhere ? AdminPages::Scope::kPublic : AdminPages::Scope::kAll;
    auto answering = admin_.Serve(connection, path, scope);
    co_await answering;
    co_return;
  }
  std::optional<Answer> refusal = RefuseAtTheDoor(connection);
  if (!refusal) {
    std::optional<std::string_view> body = connection.BufferedBody();
    if (!body) {
      auto reading = ReadBody(connection);
      const auto read = co_await reading;
      if (read) body = *read;
      if (!read && read.error().status == 0) co_return;
      if (!read) refusal = Refuse(read.error());
    }
    if (body) {
      auto fields =
          IsForm(head) ? Result<RequestFields>(RequestFields()) : ReadRequestFields(*body);
      if (fields) {
        Exchange exchange(*this, connection, RouteOf(path), *fields, *body);
        auto running = exchange.Run();
        co_await running;
        co_return;
      }
      refusal = OpenAiError(400, "invalid_json",
                            "the request body is not the JSON object it should "
                            "be: " +
                                fields.error().what);
    }
  }
  context_.metrics.CountRequest(RouteOf(path), refusal->status);
  std::array<char, 32> room;
  refusal->headers.emplace_back("x-request-id", std::string(RequestIdOf(head, ids_, room)));
  auto responding = connection.Respond(*refusal);
  co_await responding;
}

// What can be said before the body is read.
std::optional<Answer> Gateway::RefuseAtTheDoor(ServerConnection& connection) {
  if (context_.draining.load(std::memory_order_relaxed)) {
    context_.metrics.rejected_draining.Add();
    connection.CloseAfterwards();
    return OpenAiError(503, "draining", "this router is shutting down; send the request again");
  }
  if (!context_.api_keys.Admits(connection.head())) {
    return OpenAiError(401, "invalid_api_key", "a valid API key is required in Authorization");
  }
  return std::nullopt;
}

// A body that is on its way. A drain waits for it.
Task<std::expected<std::string_view, RequestProblem>> Gateway::ReadBody(
    ServerConnection& connection) {
  context_.reading.fetch_add(1, std::memory_order_relaxed);
  auto reading = connection.ReadBody();
  const auto read = co_await reading;
  context_.reading.fetch_sub(1, std::memory_order_relaxed);
  co_return read;
}

Answer Gateway::Refuse(const RequestProblem& problem) {
  const std::string_view code = problem.status == 413   ? "request_too_large"
                                : problem.status == 408 ? "request_timeout"
                                                        : "bad_request";
  return OpenAiError(problem.status, code, problem.what);
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
    // Time makes room too: the prefill of an answer that comes whole ends without a word.
    context_.dispatch.Wake();
  }
}

}  // namespace fathom
