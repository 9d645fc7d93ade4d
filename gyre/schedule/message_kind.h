// The messages that pass between workers, as far as time is concerned.
#pragma once

#include <cstddef>

namespace gyre {

// Reduce carries a sum of gradients along a reduction chain, Sum carries it from the end of the chain to an owner. If a
// stage has several owners, each Sum and Broadcast carries one shard. For a tied weight, TiedWeight carries a version
// from a pipeline's first stage to its last, and TiedSum carries the last stage's gradient of a window back.
enum class MessageKind { Activation, Gradient, Reduce, Sum, Broadcast, TiedWeight, TiedSum };
inline constexpr size_t kMessageKinds = 7;

}  // namespace gyre
