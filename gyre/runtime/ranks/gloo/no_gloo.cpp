// For builds without c10d and Gloo: a run is one process.
#include "gyre/core/error.h"
#include "gyre/runtime/ranks/wire.h"

namespace gyre {

std::unique_ptr<Rendezvous> make_rendezvous(const MeetingPlace&) {
  throw InputError(
      "this gyre was built without Gloo, so that a run is one process; install libgloo-dev and build again");
}

}  // namespace gyre
