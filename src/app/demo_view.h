// What does the demo's terminal show? One picture of a moment, drawn again in place as it changes.
//
// Pictures are plain text: lines that end with LF, none wider than asked, with colours only if
// asked for. Moving the cursor is DemoScreen's business alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"

namespace fathom {

struct DemoWorker {
  std::string name;
  uint64_t running = 0;
  uint64_t waiting = 0;
  uint64_t served = 0;
  double cache_used = 0;  // by what is running, 0 to 1
  double reused = 0;      // of its prompt tokens, found in its cache, 0 to 1
};

struct DemoSnapshot {
  Duration elapsed{};
  std::string url;  // of the router
  std::string router_mode;
  uint64_t requests = 0;
  uint64_t errors = 0;
  double requests_per_second = 0;
  double tokens_per_second = 0;
  Duration first_turn_p50{};  // time to first token of a conversation's first turn
  Duration first_turn_p90{};
  Duration follow_up_p50{};  // and of its later ones
  Duration follow_up_p90{};
  Duration itl_p50{};
  double reused = 0;          // of all prompt tokens, found in a cache, 0 to 1
  uint64_t known_blocks = 0;  // in the router's index, from the engines' events
  uint64_t event_batches = 0;
  std::vector<DemoWorker> workers;
  std::vector<double> request_history;     // requests per second, oldest first
  std::vector<double> first_turn_history;  // seconds to first token, oldest first
  std::vector<double> follow_up_history;
};

constexpr int kMinColumns = 40;

// The live picture, at most `rows` lines. Narrower than kMinColumns is drawn as if it were that.
std::string RenderView(const DemoSnapshot& snapshot, int columns, int rows, bool color);

// One line, for output that is no terminal.
std::string RenderLine(const DemoSnapshot& snapshot);

// What stays on the screen in the end.
std::string RenderSummary(const DemoSnapshot& snapshot, int columns, bool color);

// The last `width` values as bars of eighths, scaled to the largest of them.
std::string Sparkline(const std::vector<double>& values, size_t width);

// Draws on a terminal, or writes lines where there is none.
class DemoScreen {
 public:
  // Colours unless NO_COLOR is set; in place if `fd` is a terminal that can.
  explicit DemoScreen(int fd);

  // About once a second, or as often as it should change: output that is no terminal gets at most
  // one line per second.
  void Draw(const DemoSnapshot& snapshot);
  void Finish(const DemoSnapshot& snapshot);

  bool live() const { return live_; }

 private:
  void Write(const std::string& text) const;
  std::string Rewind() const;

  const int fd_;
  bool live_ = false;
  bool color_ = false;
  size_t drawn_ = 0;  // lines of the last picture
  int64_t last_second_ = -1;
};

}  // namespace fathom
