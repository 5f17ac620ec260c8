// The tokens of a prompt from the model's own files, in this process.
//
// Little new text is encoded at once. What would hold up the loop goes to threads of its own; the
// request waits for it until its deadline, then goes on with the beginning that is known. The work
// goes on without it, so that the next turn finds it done.
//
// Threads  One per loop.
// Memory   Prompts of more than kLongest bytes are not tokenized. What the threads hold of texts is
//          bounded by SideWork.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "gateway/request_fields.h"
#include "model/language_model.h"
#include "net/loop.h"
#include "net/side_work.h"
#include "net/task.h"

namespace fathom {

class LocalTokenizer {
 public:
  // Read, rendered and cut in about a millisecond.
  static constexpr size_t kMostAtOnce = size_t{256} << 10;
  // Encoded in a few milliseconds.
  static constexpr size_t kMostNewAtOnce = size_t{32} << 10;
  // Far more than any context holds.
  static constexpr size_t kLongest = size_t{32} << 20;

  LocalTokenizer(Loop& loop, SideWork& side_work, TokenCache& cache, uint64_t secret)
      : loop_(loop), side_work_(side_work), cache_(cache), secret_(secret) {}

  struct Manner {
    ChatDialect dialect = ChatDialect::kVllm;
    bool literal_user_text = false;
  };

  struct Reading {
    bool whole = false;              // the tokens are those of the whole prompt
    std::optional<Inexact> inexact;  // why not
    std::string problem;             // more of that, in words that say nothing of the prompt
    std::vector<PromptParts::Place> places;
  };
  // Appends the tokens, or those of as much of the beginning as is known. The fields must stay
  // until the task has ended.
  Task<Reading> Read(std::shared_ptr<const LanguageModel> model, const PromptFields& fields,
                     const Manner& manner, TimePoint deadline, std::vector<TokenId>& tokens);

 private:
  struct Work;
  class Wait;

  static void Render(Work& work);
  static void Encode(Work& work);
  static Reading Take(const Work& work, std::vector<TokenId>& tokens);
  bool HandOver(const std::shared_ptr<Work>& work, size_t bytes);

  Loop& loop_;
  SideWork& side_work_;
  TokenCache& cache_;
  const uint64_t secret_;
};

}  // namespace fathom
