// Gives a kernel of ours, or a part of a step, a name that libtorch's profiler and any callback on its record functions
// see, as they see ATen's operations. Without a listener it costs only the check for one.
#pragma once

#include <ATen/record_function.h>

namespace gyre {

class ProfileScope {
 public:
  // name: a string literal.
  explicit ProfileScope(const char* name) : record_(at::RecordScope::USER_SCOPE) {
    if (record_.isActive()) record_.before(name);
  }

 private:
  at::RecordFunction record_;
};

}  // namespace gyre
