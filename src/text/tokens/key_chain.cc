#include "text/tokens/key_chain.h"

namespace fathom {

void KeyChain::Extend(size_t end) {
  for (size_t i = made_; i < end; ++i) {
    const uint64_t local =
        locals_ != nullptr ? locals_[i] : LocalHash(shape_.Block(tokens_, i), seed_);
    keys_[i] = i == 0 ? local : ChainKey(keys_[i - 1], local);
  }
  made_ = end;
}

}  // namespace fathom
