// Something lent: memory that is another's and goes back to it by itself, when the last holder lets go, on whatever
// thread that is. Who holds a lease neither knows nor asks whom the memory belongs to.
#pragma once

#include <memory>

namespace gyre {

using Lease = std::shared_ptr<const void>;

}  // namespace gyre
