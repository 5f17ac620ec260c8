// Which of two builds of its tokenizer does the engine of this model use?
//
// Some classes of tokenizers are built anew by transformers 5 and taken from tokenizer.json by
// older versions. Where a model has both, the engine is asked once for the tokens of a text that
// shows the difference; until it has answered, the build of the class is used.
//
// Threads  Any. One short lock per prompt of such a model.
// Memory   An entry per such model.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "text/model/language_model.h"

namespace fathom {

class TokenizerBuilds {
 public:
  static constexpr Duration kAsksEvery = std::chrono::seconds(30);  // while there is no answer

  explicit TokenizerBuilds(Log& log) : log_(log) {}

  // The one to tokenize with.
  std::shared_ptr<const LanguageModel> Choose(std::shared_ptr<const LanguageModel> model);
  // Whether the engine is to be asked now for the tokens of model.telling_text().
  bool ShouldAsk(const LanguageModel& model, TimePoint now);
  // What it answered, with special tokens or without.
  void Hear(const LanguageModel& model, std::string_view name, const std::vector<TokenId>& tokens);

 private:
  enum class Choice : uint8_t { kOpen, kByClass, kByFile };
  struct Entry {
    Choice choice = Choice::kOpen;
    TimePoint asked{};
  };

  Log& log_;
  std::mutex mutex_;
  std::map<const LanguageModel*, Entry> entries_;  // guarded by mutex_
};

}  // namespace fathom
