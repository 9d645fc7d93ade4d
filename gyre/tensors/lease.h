// A lease on somebody else's memory, which returns to its owner when the last copy of the lease is destroyed, on any
// thread. The holder does not know the owner.
#pragma once

#include <memory>

namespace gyre {

using Lease = std::shared_ptr<const void>;

}  // namespace gyre
