#include "gyre/core/stop_signals.h"

#include <signal.h>

namespace gyre {

StopSignals::Meaning StopSignals::take(int signal, Clock::time_point now) {
  if (first_ == 0) {
    first_ = signal;
    since_ = now;
    return Meaning::Stop;
  }
  return signal == SIGHUP || now - since_ < same_within_ ? Meaning::Same : Meaning::EndAtOnce;
}

}  // namespace gyre
