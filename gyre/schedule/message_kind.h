// The messages that pass between workers, as far as time is concerned.
#pragma once

#include <cstddef>

namespace gyre {

// Sum: what a chain sends an owner; Reduce: what it passes on. With several owners a stage Sum and Broadcast are
// shards. Of a tied weight, TiedWeight takes a version of it from a pipeline's first stage to its last, TiedSum the
// last's gradient of a window back.
enum class MessageKind { Activation, Gradient, Reduce, Sum, Broadcast, TiedWeight, TiedSum };
inline constexpr size_t kMessageKinds = 7;

}  // namespace gyre
