// PyTorch's compute-only CSV of pipeline schedules (torch.distributed.pipelining): no header, a row per worker, a cell
// per action (0F0, 2B3, 2I0, 2W0), empty cells for idle time. Actions that PyTorch runs as one share a cell,
// (0F7;7B3)OVERLAP_F_B; here they run one after the other. The format has no updates, no windows and only one pipeline.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gyre/schedule/schedule.h"

namespace gyre {

// The restriction to `microbatches`, without updates and adoptions. Throws InputError for several pipelines, or for
// more than kMostWritten actions.
std::string to_csv(const Schedule& schedule, int64_t microbatches);

// All microbatches of the file make one window; an update of each stage is added at the end of its worker's row. Throws
// InputError that names the file, row and cell.
Schedule parse_csv(std::string_view text, const std::string& origin);

}  // namespace gyre
