// A descriptor that one thread makes readable to wake another, which waits for several descriptors in poll().
#pragma once

#include "gyre/core/descriptor.h"

namespace gyre {

class WakeFlag {
 public:
  WakeFlag();  // throws RunError if no descriptor is left

  // From any thread. The descriptor stays readable until lower().
  void raise() const;
  // Makes it unreadable until it is raised again. Returns whether it was raised.
  bool lower() const;
  int descriptor() const { return descriptor_.get(); }

 private:
  Descriptor descriptor_;
};

}  // namespace gyre
