// PyTorch's compute-only CSV of pipeline schedules (torch.distributed.pipelining): a row per worker, a cell per action,
// an empty cell is idle, no header: 0F0, 2B3, 2I0, 2W0. Actions that PyTorch runs as one are a cell too,
// (0F7;7B3)OVERLAP_F_B; here they follow one another. It has neither updates nor windows nor several pipelines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gyre/schedule/schedule.h"

namespace gyre {

// The restriction to `microbatches`, without updates and adoptions. InputError for several pipelines.
std::string to_csv(const Schedule& schedule, int64_t microbatches);

// All microbatches of the file make one window; an update of each stage is added at the end of its worker's row.
// InputError says file, row and cell.
Schedule parse_csv(std::string_view text, const std::string& origin);

}  // namespace gyre
