// What an optimizer holds besides its state, and not from its construction on.
#pragma once

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

}  // namespace gyre
