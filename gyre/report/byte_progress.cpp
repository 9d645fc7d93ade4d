#include "gyre/report/byte_progress.h"

#include <fmt/format.h>

#include "gyre/core/text.h"

namespace gyre {

void ByteProgress::at(const std::string& doing, int64_t done, int64_t total) {
  if (doing != doing_ || done < done_) {
    doing_ = doing;
    began_ = Clock::now();
  }
  done_ = done;
  if (!line_.is_due()) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  const double speed = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  std::string text = fmt::format("{} {}", doing, human_bytes(static_cast<double>(done)));
  if (total > 0) text += fmt::format(" of {}", human_bytes(static_cast<double>(total)));
  text += fmt::format("  {:.1f} MB/s", speed / 1e6);
  if (total > 0 && speed > 0) {
    text += fmt::format("  ETA {}", human_duration(static_cast<double>(total - done) / speed));
  }
  line_.draw(total > 0 ? static_cast<double>(done) / static_cast<double>(total) : -1, text);
}

}  // namespace gyre
