#include "gyre/report/byte_progress.h"

#include <fmt/format.h>

#include "gyre/core/text.h"
#include "gyre/core/timing.h"

namespace gyre {
namespace {

constexpr double kMinSeconds = 0.1;  // a speed over less is chance

}  // namespace

void ByteProgress::at(const std::string& doing, int64_t done, int64_t total) {
  if (doing != doing_ || done < done_) {
    doing_ = doing;
    began_ = clock_();
    done_at_beginning_ = done;
  }
  done_ = done;
  if (!line_.is_due()) return;
  const double seconds = seconds_between(began_, clock_());
  const double speed = seconds < kMinSeconds ? 0 : static_cast<double>(done - done_at_beginning_) / seconds;
  std::string text = fmt::format("{} {}", doing, human_bytes(static_cast<double>(done)));
  if (total > 0) text += fmt::format(" of {}", human_bytes(static_cast<double>(total)));
  if (speed > 0) text += fmt::format("  {:.1f} MB/s", speed / 1e6);
  if (total > 0 && speed > 0) {
    text += fmt::format("  ETA {}", human_duration(static_cast<double>(total - done) / speed));
  }
  line_.draw(total > 0 ? static_cast<double>(done) / static_cast<double>(total) : -1, text);
}

}  // namespace gyre
