// How tall are the trees that a node stands on?
#pragma once

#include <algorithm>
#include <cstdint>

#include "text/jinja/syntax.h"

namespace fathom {

inline uint32_t HeightOf(const ExpressionPtr& expression) {
  return expression == nullptr ? 0 : expression->height;
}

template <class... Others>
uint32_t HeightOf(const ExpressionPtr& first, const Others&... others) {
  return std::max({HeightOf(first), HeightOf(others)...});
}

inline uint32_t HeightOf(const Expressions& expressions) {
  uint32_t height = 0;
  for (const ExpressionPtr& expression : expressions)
    height = std::max(height, HeightOf(expression));
  return height;
}

inline uint32_t HeightOf(const ArgumentList& list) {
  uint32_t height =
      std::max(HeightOf(list.positional), HeightOf(list.more_positional, list.more_keywords));
  for (const auto& [name, value] : list.keywords) height = std::max(height, HeightOf(value));
  return height;
}

}  // namespace fathom
