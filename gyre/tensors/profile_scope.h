// A name that libtorch's profiler, and any callback on its record functions, sees beside those of ATen's operations: a
// kernel of ours, or a part of a step. Without a listener it costs a look at whether there is one.
#pragma once

#include <ATen/record_function.h>

namespace gyre {

class ProfileScope {
 public:
  // name: a literal.
  explicit ProfileScope(const char* name) : record_(at::RecordScope::USER_SCOPE) {
    if (record_.isActive()) record_.before(name);
  }

 private:
  at::RecordFunction record_;
};

}  // namespace gyre
