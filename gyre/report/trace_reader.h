// A trace as a picture needs it: what each worker did when, what it waited for between, and the messages. Read from the
// Chrome trace format, so that runs, simulations and other programs' traces are one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gyre {

struct TraceSlice {
  std::string name;  // "2F17"
  std::string category;
  double start = 0, end = 0;  // microseconds
  int64_t stage = -1;         // where the trace says it
};

// What a worker waited for.
enum class WaitReason {
  Activation,  // the stage before had not computed it
  Gradient,    // the stage after had not
  Link,        // it was under way from another process
  Update,      // gradients or norms of others, before an update
  Version,     // an update of others, before an adoption
  Other,       // room, a drain, a checkpoint: nothing that the trace says
  End,         // the others, after its last action
};
inline constexpr int kWaitReasons = 7;
const char* to_string(WaitReason reason);

struct TraceWait {
  double start = 0, end = 0;
  WaitReason reason = WaitReason::Other;
  int64_t from = -1;  // the track that the message came from
};
struct TraceTrack {
  std::string name;                // "worker 3"
  std::vector<TraceSlice> slices;  // by start
  std::vector<TraceWait> waits;    // likewise
};
struct TraceArrow {
  size_t from = 0, to = 0;  // tracks
  double sent = 0, taken = 0;
  bool is_gradient = false;
};

struct Trace {
  std::vector<TraceTrack> tracks;
  std::vector<TraceArrow> arrows;
  double begin = 0, end = 0;
  int64_t total = 0;                                // slices of the trace; more than there are here if it was thinned
  std::vector<std::pair<double, double>> left_out;  // times, of all tracks
};

// InputError where `text` is no trace; `origin` is what it is called.
Trace parse_trace(std::string_view text, const std::string& origin);
// Leaves out stretches of time, evenly, so that about `most` slices stay: what stays is whole in itself.
Trace thinned(Trace trace, int64_t most);

}  // namespace gyre
