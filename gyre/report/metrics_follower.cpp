#include "gyre/report/metrics_follower.h"

#include <algorithm>

namespace gyre {
namespace {

constexpr uint64_t kBlock = uint64_t{4} << 20;  // bytes read at a time
constexpr size_t kRemembered = 256;             // bytes, the length of last_

}  // namespace

void MetricsFollower::read(const std::function<void()>& begin, const std::function<void(const MetricsLine&)>& visit) {
  if (!is_there(path_)) {
    forget();
    begin();
    return;
  }
  const InputFile file(path_);
  if (!continues(file)) forget();
  if (read_ == 0) begin();
  try {
    take_new(file, visit);
  } catch (...) {
    forget();  // only part of the lines was visited
    throw;
  }
}

// A resumed session replaces the file: then the bytes read last are no longer at their place.
bool MetricsFollower::continues(const InputFile& file) const {
  if (file.size() < read_) return false;
  std::string found(last_.size(), '\0');
  file.read_at(read_ - found.size(), found.data(), found.size());
  return found == last_;
}

void MetricsFollower::take_new(const InputFile& file, const std::function<void(const MetricsLine&)>& visit) {
  std::string text;
  for (uint64_t at = read_; at < file.size();) {
    const size_t rest = text.size(), bytes = std::min(kBlock, file.size() - at);
    text.resize(rest + bytes);
    file.read_at(at, text.data() + rest, bytes);
    at += bytes;
    const size_t whole = text.rfind('\n') + 1;  // what follows the last newline is still being written
    take(std::string_view(text).substr(0, whole), visit);
    text.erase(0, whole);
  }
}

void MetricsFollower::take(std::string_view lines, const std::function<void(const MetricsLine&)>& visit) {
  if (lines.empty()) return;
  const auto count = [&](const MetricsLine& line) {
    visit(line);
    lines_ = line.number();
  };
  for_each_metrics_line(lines, path_.string(), advice_, count, lines_);
  read_ += lines.size();
  last_ = lines.substr(lines.size() - std::min(lines.size(), kRemembered));
}

void MetricsFollower::forget() {
  read_ = 0;
  lines_ = 0;
  last_.clear();
}

}  // namespace gyre
