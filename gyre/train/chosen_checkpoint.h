// Chooses the checkpoint of a run that a command reads. The run may be training meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/train/run_directory.h"

namespace gyre {

// `asked`, or the newest. Throws InputError if it is not there.
int64_t choose_checkpoint(const RunDirectory& run, std::optional<int64_t> asked);

// Returns read(step) for the step that choose_checkpoint chose. A run that trains may remove the newest meanwhile; then
// there is a newer one, and that is read.
template <typename Read>
auto read_chosen(const RunDirectory& run, std::optional<int64_t> asked, int64_t step, Read&& read) {
  for (;;) {
    try {
      return read(step);
    } catch (const Error&) {
      const int64_t now = choose_checkpoint(run, asked);
      if (now == step) throw;
      step = now;
    }
  }
}

}  // namespace gyre
