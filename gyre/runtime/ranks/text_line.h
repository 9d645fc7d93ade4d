// A connection for texts between rank 0 and one other process, apart from workers' messages. Few may be under way.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "gyre/runtime/ranks/ranks.h"

namespace gyre {

class TextLine {
 public:
  // number: which of the lines between the two processes; each end makes each line once. `ranks` must outlive it.
  TextLine(Ranks& ranks, int other, int number);
  void say(const std::string& text);
  // The next text from the other side. Throws RunError if the run cannot go on, or when a stop is requested.
  std::string hear(const std::stop_token& stop = {}, Patience patience = {});

 private:
  Ranks& ranks_;
  Doorbell bell_;
  std::unique_ptr<Sender> out_;
  std::unique_ptr<Receiver> in_;
};

}  // namespace gyre
