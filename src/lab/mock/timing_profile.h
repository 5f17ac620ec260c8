// How long does a step of the engine take?
//
// `h200-llama-3.1-8b` and `h200-qwen3-32b` come from measured tables: between the points of a table
// times are interpolated linearly, beyond its edge the last slope goes on. `polynomial` is the
// formula of a published simulator, so that results can be compared with that one: a quadratic in
// the new tokens, and a decode time that follows the share of the cache in use.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace fathom {

// What one step has to do.
struct StepLoad {
  uint64_t new_tokens = 0;      // of prompts, over all sequences
  uint64_t context_of_new = 0;  // sum over those tokens' sequences: new * what stands before them
  uint64_t decoding = 0;        // sequences that get their next token
  uint64_t context_of_decoding = 0;  // tokens of context of all of them
  uint64_t cache_tokens = 0;         // size of the cache
};

class TimingProfile {
 public:
  virtual ~TimingProfile() = default;
  virtual Duration StepTime(const StepLoad& load) const = 0;

  static Result<std::unique_ptr<TimingProfile>> Named(std::string_view name);
  static std::vector<std::string_view> Names();
};

// A function given at some points of a plane, in rows of equal y.
class TimingTable {
 public:
  void Add(double x, double y, double value) { rows_[y][x] = value; }
  // Interpolated along x in the rows around y, then between them.
  double At(double x, double y) const;
  bool empty() const { return rows_.empty(); }

 private:
  using Row = std::map<double, double>;
  static double Along(const Row& row, double x);

  std::map<double, Row> rows_;
};

// Times from two tables: prefill (x: new tokens, y: cached tokens) and decode (x: sequences, y:
// context of each), in milliseconds.
class MeasuredProfile final : public TimingProfile {
 public:
  static Result<std::unique_ptr<MeasuredProfile>> Read(std::string_view model,
                                                       std::string_view prefill_csv,
                                                       std::string_view decode_csv);
  Duration StepTime(const StepLoad& load) const override;
  Duration Prefill(uint64_t new_tokens, uint64_t cached_tokens) const;
  Duration Decode(uint64_t sequences, uint64_t context_each) const;

 private:
  TimingTable prefill_;
  TimingTable decode_;
};

}  // namespace fathom
