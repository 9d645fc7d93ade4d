// What an optimizer holds besides its state, and not from its construction on.
#pragma once

#include <algorithm>

namespace gyre {

// At most, in bytes. Doubles, since a wrong configuration's sizes fit no integer.
struct PassingBytes {
  double held = 0;
  double per_delay = 0;  // held besides, for each update by which gradients are late
  double saved = 0;      // what a checkpoint has of it, with the entries in its header

  PassingBytes& operator+=(const PassingBytes& other) {
    held += other.held;
    per_delay += other.per_delay;
    saved += other.saved;
    return *this;
  }
};

// What a step holds only while it is made, at most, in bytes: with gradients that are not late, and with late ones.
struct StepBytes {
  double prompt = 0, late = 0;

  // Of steps that are made one after the other.
  void take_larger(const StepBytes& other) {
    prompt = std::max(prompt, other.prompt);
    late = std::max(late, other.late);
  }
};

}  // namespace gyre
