// A descriptor that becomes readable, for a thread that waits for several by poll and is to be woken by another.
#pragma once

namespace gyre {

class WakeFlag {
 public:
  WakeFlag();  // RunError: no descriptor is left
  ~WakeFlag();
  WakeFlag(const WakeFlag&) = delete;
  WakeFlag& operator=(const WakeFlag&) = delete;

  // Any thread. It stays readable.
  void raise() const;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace gyre
