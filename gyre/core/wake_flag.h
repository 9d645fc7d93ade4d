// A descriptor that one thread makes readable to wake another, which waits for several descriptors in poll().
#pragma once

namespace gyre {

class WakeFlag {
 public:
  WakeFlag();  // throws RunError if no descriptor is left
  ~WakeFlag();
  WakeFlag(const WakeFlag&) = delete;
  WakeFlag& operator=(const WakeFlag&) = delete;

  // From any thread. The descriptor stays readable until lower().
  void raise() const;
  // Makes it unreadable until it is raised again. Returns whether it was raised.
  bool lower() const;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace gyre
