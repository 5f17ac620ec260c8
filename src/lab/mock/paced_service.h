// Answers each request at its own pace: a pause before the first token, then one token after the
// other, however many requests there are. Nothing is simulated, so it costs little: for tests and
// benchmarks of what stands in front of it.
//
// Threads  One loop.
#pragma once

#include "io/net/loop.h"
#include "lab/mock/completion_answer.h"
#include "lab/mock/mock_options.h"
#include "lab/mock/visit.h"

namespace fathom {

class PacedService {
 public:
  // Both must outlive it.
  PacedService(Loop& loop, const MockOptions& options)
      : loop_(loop), options_(options), speaker_(options.name, options.chunk_bytes) {}

  // After the name has changed.
  void Rename() { speaker_ = Speaker(options_.name, options_.chunk_bytes); }
  // No token is sent from now on, and no connection closed.
  void Silence() { silent_ = true; }

  Task<Outcome> Serve(Visit& visit);

 private:
  Answer WholeAnswer(const Visit& visit, std::string_view text) const;
  Task<Outcome> AnswerWhole(Visit& visit);
  Task<Outcome> AnswerAtLength(Visit& visit);
  Task<Outcome> AnswerStream(Visit& visit);
  Task<Outcome> StreamTokens(Visit& visit, StreamFrames& frames);

  TimePoint Due(const Visit& visit, uint64_t token) const;
  bool DiesWithin(const Visit& visit) const;
  uint64_t TokensBy(const Visit& visit, TimePoint now) const;

  Loop& loop_;
  const MockOptions& options_;
  Speaker speaker_;
  bool silent_ = false;
};

}  // namespace fathom
