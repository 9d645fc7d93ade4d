#include "gyre/report/html/timeline_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "gyre/core/text.h"

namespace gyre {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxSlices = 150'000;

// Rounds to tenths of a microsecond, which is finer than the clocks' precision.
double rounded(double microseconds) {
  return std::round(microseconds * 10) / 10;
}

// How each track spent its time, over the whole trace.
Json shares(const Trace& trace) {
  Json all = Json::array();
  for (const TraceTrack& track : trace.tracks) {
    std::array<double, kWaitReasons> waited{};
    // Slices of other programs' traces may lie in others: time is counted once.
    double busy = 0, counted_to = trace.begin;
    for (const TraceSlice& slice : track.slices) {
      busy += std::max(0.0, slice.end - std::max(slice.start, counted_to));
      counted_to = std::max(counted_to, slice.end);
    }
    for (const TraceWait& wait : track.waits) waited[static_cast<size_t>(wait.reason)] += wait.end - wait.start;
    all.push_back({{"busy", busy}, {"waited", waited}});
  }
  return all;
}

// The mean time of each kind of action at each stage, in seconds.
Json means(const Trace& trace) {
  std::map<int64_t, std::map<std::string, std::pair<double, int64_t>>> sums;
  for (const TraceTrack& track : trace.tracks) {
    for (const TraceSlice& slice : track.slices) {
      if (slice.stage < 0) continue;
      auto& [seconds, count] = sums[slice.stage][slice.category];
      seconds += (slice.end - slice.start) / 1e6;
      ++count;
    }
  }
  Json all = Json::array();
  for (const auto& [stage, kinds] : sums) {
    Json entry = {{"stage", stage}};
    for (const auto& [kind, sum] : kinds) entry[kind] = sum.first / static_cast<double>(sum.second);
    all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace

Json timeline_part(Trace trace, const std::string& name, bool is_simulated, std::vector<std::string>& notes) {
  Json json = {{"name", name},         {"simulated", is_simulated}, {"length", rounded(trace.end - trace.begin)},
               {"total", trace.total}, {"shares", shares(trace)},   {"means", means(trace)}};
  trace = thinned(std::move(trace), kMaxSlices);
  const double begin = trace.begin;
  int64_t kept = 0;
  json["tracks"] = Json::array();
  for (const TraceTrack& track : trace.tracks) {
    std::vector<std::string> names;
    std::string categories;
    Json start = Json::array(), duration = Json::array(), waits = Json::array();
    for (const TraceSlice& slice : track.slices) {
      names.push_back(slice.name);
      // The page uses a letter for each kind; actions of other programs' traces are 'x'.
      categories += slice.category == "forward"    ? 'f'
                    : slice.category == "backward" ? 'b'
                    : slice.category == "update"   ? 'u'
                    : slice.category == "adopt"    ? 'a'
                                                   : 'x';
      start.push_back(rounded(slice.start - begin));
      duration.push_back(rounded(slice.end - slice.start));
    }
    kept += static_cast<int64_t>(track.slices.size());
    for (const TraceWait& wait : track.waits) {
      waits.push_back(
          {rounded(wait.start - begin), rounded(wait.end - wait.start), static_cast<int>(wait.reason), wait.from});
    }
    json["tracks"].push_back({{"name", track.name},
                              {"names", join(names, "\n")},
                              {"kinds", categories},
                              {"start", start},
                              {"duration", duration},
                              {"waits", waits}});
  }
  json["kept"] = kept;
  json["arrows"] = Json::array();
  for (const TraceArrow& arrow : trace.arrows) {
    json["arrows"].push_back(
        {arrow.from, rounded(arrow.sent - begin), arrow.to, rounded(arrow.taken - begin), arrow.is_gradient ? 1 : 0});
  }
  json["left_out"] = Json::array();
  for (const auto& [from, to] : trace.left_out)
    json["left_out"].push_back({rounded(from - begin), rounded(to - begin)});
  if (kept < trace.total) {
    notes.push_back(
        fmt::format("{}: the timeline shows {} of {} actions, in {} stretches spread over the whole time; "
                    "trace fewer updates to see all",
                    name, kept, trace.total, trace.left_out.size()));
  }
  return json;
}

Json trace_part(const std::filesystem::path& trace, const std::string& name, std::vector<std::string>& notes) {
  return timeline_part(read_trace(trace), name, false, notes);
}

}  // namespace gyre
