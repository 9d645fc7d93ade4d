// metrics.jsonl, by all who read it.
#include "gyre/report/metrics.h"

#include "fuzz/targets.h"
#include "gyre/report/metrics_reader.h"
#include "gyre/study/curves.h"

namespace gyre::fuzz {

void metrics(std::string_view input) {
  accepted([&] { return parse_record(input, "input", 2); });
  const auto curve = accepted([&] { return parse_curve(input, "input"); });
  if (curve) require(curve->loss.size() == curve->seconds.size(), "every loss has its time");
  const auto kept = accepted([&] { return metrics_until(input, "input", 2); });
  if (kept) require(metrics_until(*kept, "kept", 2) == *kept, "what a resumed run keeps, it keeps again");
}

}  // namespace gyre::fuzz
