// metrics.jsonl, by all of its readers.
#include "gyre/report/metrics.h"

#include <nlohmann/json.hpp>

#include "fuzz/targets.h"
#include "gyre/report/metrics_reader.h"
#include "gyre/study/curves.h"

namespace gyre::fuzz {

void metrics(std::string_view input) {
  accepted([&] { return parse_record(input, "input", 2); });
  const auto curve = accepted([&] { return parse_curve(input, "input"); });
  if (curve) require(curve->loss.size() == curve->seconds.size(), "every loss has its time");
  const auto kept = accepted([&] { return continued_metrics(input, "input", 2, {}); });
  if (!kept) return;
  const std::string again = continued_metrics(*kept, "continued", 2, {});
  require(again.starts_with(*kept), "what a resumed run keeps, it keeps again");
}

}  // namespace gyre::fuzz
