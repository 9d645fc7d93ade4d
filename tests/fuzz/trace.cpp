// The traces that the report draws.
#include "gyre/report/trace_reader.h"

#include "fuzz/targets.h"

namespace gyre::fuzz {

void trace(std::string_view input) {
  const auto read = accepted([&] { return parse_trace(input, "input"); });
  if (!read) return;
  require(read->total > 0 && read->begin <= read->end, "a trace has slices, and a length");
  const Trace kept = thinned(*read, 3);
  for (const TraceArrow& arrow : read->arrows) {
    require(arrow.from < read->tracks.size() && arrow.to < read->tracks.size(), "arrows are between tracks");
  }
  require(kept.tracks.size() == read->tracks.size(), "tracks stay");
}

}  // namespace gyre::fuzz
