// Reads a trace in the Chrome trace format for drawing: what each worker did when, what it waited for in between, and
// the messages. Traces of runs, simulations and other programs are handled alike.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gyre {

struct TraceSlice {
  std::string name;  // "2F17"
  std::string category;
  double start = 0, end = 0;  // microseconds
  int64_t stage = -1;         // -1: the trace does not say
};

// What a worker waited for.
enum class WaitReason {
  Activation,  // the stage before had not computed the activation
  Gradient,    // the stage after had not computed the gradient
  Link,        // the message was under way from another process
  Update,      // gradients or norms of other workers, before an update
  Version,     // an update by another worker, before an adoption
  Other,       // what the trace does not show: room in a link, a drain, a checkpoint
  End,         // the other workers, after its own last action
};
inline constexpr int kWaitReasons = 7;
const char* to_string(WaitReason reason);

struct TraceWait {
  double start = 0, end = 0;
  WaitReason reason = WaitReason::Other;
  int64_t from = -1;  // the track that the message came from; -1: none
};
struct TraceTrack {
  std::string name;                // "worker 3"
  std::vector<TraceSlice> slices;  // sorted by start; then one that others lie in comes before them
  std::vector<TraceWait> waits;    // likewise
};
struct TraceArrow {
  size_t from = 0, to = 0;  // indices of tracks
  double sent = 0, taken = 0;
  bool is_gradient = false;
};

struct Trace {
  std::vector<TraceTrack> tracks;
  std::vector<TraceArrow> arrows;
  double begin = 0, end = 0;
  int64_t total = 0;                                // number of slices before thinning
  std::vector<std::pair<double, double>> left_out;  // stretches of time that thinning removed from all tracks
};

// Throws InputError if `text` is not a trace. origin: its name, for messages.
Trace parse_trace(std::string_view text, const std::string& origin);
// The same for a file, whose text is never in memory as a whole.
Trace read_trace(const std::filesystem::path& path);
// Removes evenly spaced stretches of time, so that about `max_slices` slices remain. The remaining stretches are
// complete. A trace in which no time passes has none to remove.
Trace thinned(Trace trace, int64_t max_slices);

}  // namespace gyre
