// Where does the demo draw? On a terminal, in place, on its alternate screen, so that resizing
// leaves nothing behind and the shell's text comes back; elsewhere it writes a line now and then.
//
// Threads  One. What a crash leaves behind, TerminalKeys cleans up.
#pragma once

#include <string>

#include "lab/demo/demo_moment.h"

namespace fathom {

// What brings the ordinary screen back.
constexpr const char* kLeaveScreen = "\x1b[?1049l";

class DemoScreen {
 public:
  // Colours unless NO_COLOR is set; in place if `fd` is a terminal that can.
  explicit DemoScreen(int fd);
  ~DemoScreen() { Leave(); }
  DemoScreen(const DemoScreen&) = delete;
  DemoScreen& operator=(const DemoScreen&) = delete;

  // As often as it should change: output that is no terminal gets lines every kBetweenLines only,
  // and when the fault takes another turn, after some that say where the routers listen.
  void Draw(const DemoMoment& moment);
  // Brings the ordinary screen back. Nothing is drawn after it.
  void Leave();
  // The summary, which stays.
  void Finish(const DemoMoment& moment);

  void set_keys(bool keys) { keys_ = keys; }
  bool live() const { return live_; }

 private:
  static constexpr Duration kBetweenLines = std::chrono::seconds(2);

  void WriteLines(const DemoMoment& moment);
  void WriteFault(const DemoMoment& moment);
  void WriteOpening(const DemoMoment& moment);
  void Write(const std::string& text) const;

  const int fd_;
  bool live_ = false;
  bool color_ = false;
  bool keys_ = false;
  bool entered_ = false;
  Duration next_lines_{};
  FaultStage told_ = FaultStage::kNone;
};

}  // namespace fathom
