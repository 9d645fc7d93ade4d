// What there is: all that gyre itself needs to know.
#include "gyre/model/settings/model_kind.h"
#include "gyre/optim/settings/optimizer_kind.h"
#include "outside/components.h"
#include "outside/settings.h"

namespace gyre::outside {

void add_kinds() {
  add_lifo_schedule();
  optimizer_kinds().add({.name = "signum", .meaning = "the sign of the momentum", .own = SignumSettings()});
  model_kinds().add({.name = "echo", .meaning = "decoder that learns to repeat", .own = EchoSettings()});
}

}  // namespace gyre::outside
