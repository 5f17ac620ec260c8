#include "router/gateway/loop_router.h"

#include "router/gateway/engine_tokenizer.h"

namespace fathom {
namespace {

// The source of depths: the index that events feed, or that of the router's own decisions.
const CacheIndex* IndexOf(const GatewayContext& context) {
  const auto& approximate = context.steering.approximate;
  return approximate ? &approximate->index() : context.cache_index;
}

}  // namespace

LoopRouter::LoopRouter(GatewayContext& c, Loop& l, uint64_t seed)
    : context(c),
      loop(l),
      fleet(c.fleet),
      policy(c.options.steering.mode, seed, c.turn),
      steering(c.steering, DepthsOf(IndexOf(c)), seed),
      prompts({.timeout = c.options.tokenize_timeout,
               .speed = &c.steering.speed,
               .secret = c.steering.secret,
               .literal_user_text = c.options.literal_user_text,
               .by_text = c.options.steering.by_text},
              l, std::make_shared<EngineTokenizer>(l, c.resolver, c.directory, c.tokenizers),
              {c.models, c.token_cache, c.prefix_cache, c.side_work, c.tokenizing,
               c.tokenizers.complaints(), c.prompt_memory, c.tokenizers.builds(), &c.prompt_watch,
               &c.parity}),
      responses(std::make_shared<ResponseSearch>(l, c.resolver, c.directory, c.fleet,
                                                 c.response_searches)) {}

}  // namespace fathom
