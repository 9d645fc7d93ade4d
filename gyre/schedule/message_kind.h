// The messages that pass between workers, as far as time is concerned.
#pragma once

#include <cstddef>

namespace gyre {

// Named as the links that carry them (runtime/transport/link.h). Reduction carries a sum of gradients along a reduction
// chain, Sum carries it from the end of the chain to an owner, and Version carries new weights from an owner to a
// replica. If a stage has several owners, each Sum and Version carries one shard. For a tied weight, TiedWeight carries
// a version from a pipeline's first stage to its last, and TiedSum carries the last stage's gradient of a window back.
enum class MessageKind { Activation, Gradient, Reduction, Sum, Version, TiedWeight, TiedSum };
inline constexpr size_t kMessageKinds = 7;

}  // namespace gyre
