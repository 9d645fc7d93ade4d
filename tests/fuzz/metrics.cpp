// metrics.jsonl, by all of its readers.
#include "gyre/report/metrics.h"

#include <nlohmann/json.hpp>

#include "fuzz/memory_file.h"
#include "fuzz/targets.h"
#include "gyre/report/metrics_reader.h"
#include "gyre/study/curves.h"

namespace gyre::fuzz {

void metrics(std::string_view input) {
  const auto curve = accepted([&] { return parse_curve(input, "input"); });
  if (curve) require(curve->loss.size() == curve->seconds.size(), "every loss has its time");
  const MemoryFile file(input);
  if (const auto record = accepted([&] { return read_record(file.path(), 2); })) {
    const std::string_view kept = input.substr(0, record->kept.bytes);
    int64_t lines = 0;
    for_each_metrics_line(kept, "kept", "", [&](const MetricsLine& line) {
      require(is_kept(line, 2), "a line that is dropped is not copied unread");
      lines = line.number();
    });
    require(lines == record->kept.lines && (kept.empty() || kept.back() == '\n'), "whole lines are copied unread");
  }
}

}  // namespace gyre::fuzz
