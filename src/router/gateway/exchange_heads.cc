#include "codec/request_target.h"
#include "router/gateway/exchange.h"
#include "router/gateway/token_body.h"

namespace fathom {

// The client's bytes, unless the prompt is sent as token ids.
std::string_view Exchange::BodyFor(const Worker& worker) {
  const std::span<const TokenId> tokens = selection_.TokensFor(worker);
  if (tokens.empty()) {
    if (context_.options.literal_user_text && route_ == Route::kChat) {
      context_.metrics.not_literal.Add();
      context_.tokenizers.complaints().NotLiteral(fields_.model, loop_.now());
    }
    return body_;
  }
  token_body_ = WithTokenIds(body_, fields_, route_, worker.report.engine(), tokens);
  context_.metrics.forwarded_as_tokens.Add();
  return token_body_;
}

void Exchange::BuildRequestHead(const Worker& worker, size_t body_bytes) {
  const RequestHead& head = client_.head();
  const WorkerSpec& spec = worker.spec();
  const RequestTarget target = RequestTarget::Of(head.target);
  request_head_.Clear();
  request_head_.Add(head.method, " ", spec.base_path, target.path, target.query,
                    " HTTP/1.1\r\nhost: ", spec.host_header, "\r\n");
  const bool own_key = !spec.api_key.empty();
  for (const Header& header : head.headers.all()) {
    switch (header.id) {
      case HeaderName::kHost:
      case HeaderName::kContentLength:
      case HeaderName::kExpect:
      case HeaderName::kRequestId:
      case HeaderName::kFathomWorker:
      case HeaderName::kFathomRouting:
      case HeaderName::kFathomForwarded:
        continue;
      case HeaderName::kDataParallelRank:
        if (selection_.names_rank()) continue;
        break;
      case HeaderName::kAuthorization:
        // The router's own keys must not reach workers.
        if (own_key || context_.api_keys.required()) continue;
        break;
      default:
        if (IsHopByHop(header, head.headers)) continue;
        if (context_.api_keys.required() && EqualsIgnoreCase(header.name, KeyRing::kApiKeyHeader)) {
          continue;
        }
        if (usage_.asks() && EqualsIgnoreCase(header.name, "accept-encoding")) continue;
    }
    request_head_.Add(header.name, ": ", header.value, "\r\n");
  }
  // The answer must be uncompressed, so that usage can be removed from it.
  if (usage_.asks()) request_head_.Add("accept-encoding: identity\r\n");
  if (own_key) request_head_.Add("authorization: Bearer ", spec.api_key, "\r\n");
  if (selection_.names_rank()) {
    request_head_.Add("x-data-parallel-rank: ", Decimal(selection_.dp_rank()).text(), "\r\n");
  }
  request_head_.Add("x-request-id: ", request_id_,
                    "\r\ncontent-length: ", Decimal(body_bytes).text(), "\r\n\r\n");
}

// The headers that are added to the worker's own.
void Exchange::BuildAnswerHeaders(const Worker& worker) {
  request_head_.Clear();
  request_head_.Add("x-request-id: ", request_id_, "\r\n");
  if (!context_.options.routing_headers) return;
  request_head_.Add("x-fathom-worker: ", worker.id_text(), "\r\n");
  if (!selection_.by_prompt()) return;
  request_head_.Add("x-fathom-dp-rank: ", Decimal(selection_.dp_rank()).text(), "\r\n");
  if (const auto cached = selection_.cached_tokens()) {
    request_head_.Add("x-fathom-cached-tokens: ", Decimal(*cached).text(), "\r\n");
  }
}

void Exchange::Finish(int status) {
  const Duration took = loop_.now() - client_.request_started();
  context_.metrics.CountRequest(route_, status);
  context_.metrics.duration.Observe(took);
  if (!context_.options.log_requests) return;
  context_.log.Info("Request", {{"request_id", request_id_},
                                {"route", Name(route_)},
                                {"model", fields_.model},
                                {"status", status},
                                {"worker_id", worker_ != nullptr ? worker_->id().value() : 0},
                                {"attempts", selection_.tried() + (worker_ != nullptr ? 1 : 0)},
                                {"bytes", bytes_out_},
                                {"seconds", Seconds(took)}});
}

}  // namespace fathom
