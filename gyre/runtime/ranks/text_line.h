// A line on which rank 0 and one other process say texts to each other, beside what workers send. Few are under way.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "gyre/runtime/ranks/ranks.h"

namespace gyre {

class TextLine {
 public:
  // number: which of the lines between the two; each is made once at either end. `ranks` outlives it.
  TextLine(Ranks& ranks, int other, int number);
  void say(const std::string& text);
  // The next that the other says. RunError when the run cannot go on, or when a stop is requested.
  std::string hear(const std::stop_token& stop = {});

 private:
  Ranks& ranks_;
  Doorbell bell_;
  std::unique_ptr<Sender> out_;
  std::unique_ptr<Receiver> in_;
};

}  // namespace gyre
