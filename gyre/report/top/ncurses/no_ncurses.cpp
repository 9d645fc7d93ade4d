// Used in builds without ncurses: open_terminal() always throws.
#include "gyre/core/error.h"
#include "gyre/report/top/terminal.h"

namespace gyre {

std::unique_ptr<Terminal> open_terminal() {
  throw InputError("this gyre was built without ncurses: give --once (watch -n 1 gyre top --once RUN repeats it)");
}

}  // namespace gyre
