#include "gyre/report/trace.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "gyre/core/files.h"

namespace gyre {
namespace {

constexpr double kMicroseconds = 1e6;

const char* category(ActionKind kind) {
  switch (kind) {
    case ActionKind::Forward:
      return "forward";
    case ActionKind::Backward:
    case ActionKind::BackwardInput:
    case ActionKind::BackwardWeights:
      return "backward";
    case ActionKind::Update:
      return "update";
    case ActionKind::Adopt:
      return "adopt";
  }
  return "";
}

// Where the result of an action goes, if that is another stage.
std::optional<int> receiver(const Action& action, int stages) {
  if (action.kind == ActionKind::Forward && action.stage + 1 < stages) return action.stage + 1;
  const bool gives_gradient = action.kind == ActionKind::Backward || action.kind == ActionKind::BackwardInput;
  if (gives_gradient && action.stage > 0) return action.stage - 1;
  return std::nullopt;
}
std::optional<int> sender(const Action& action, int stages) {
  if (action.kind == ActionKind::Forward && action.stage > 0) return action.stage - 1;
  const bool takes_gradient = action.kind == ActionKind::Backward || action.kind == ActionKind::BackwardInput;
  if (takes_gradient && action.stage + 1 < stages) return action.stage + 1;
  return std::nullopt;
}

class TraceText {
 public:
  explicit TraceText(const Schedule& schedule) : schedule_(schedule) {}

  void add_worker(int worker, const std::vector<TimedAction>& actions) {
    add(fmt::format(R"({{"name":"thread_name","ph":"M","pid":0,"tid":{0},"args":{{"name":"worker {0}"}}}})", worker));
    for (const TimedAction& timed : actions) add_action(worker, timed);
  }

  std::string take() { return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + std::move(events_) + "\n]}\n"; }

 private:
  void add(const std::string& event) {
    if (!events_.empty()) events_ += ",\n";
    events_ += event;
  }

  void add_action(int worker, const TimedAction& timed) {
    const Action& action = timed.action;
    const double start = timed.start * kMicroseconds;
    const double end = timed.end * kMicroseconds;
    add(fmt::format(R"({{"name":"{}","cat":"{}","ph":"X","pid":0,"tid":{},"ts":{:.3f},"dur":{:.3f},)"
                    R"("args":{{"pipeline":{},"stage":{},"{}":{}}}}})",
                    to_string(action, schedule_.pipelines), category(action.kind), worker, start, end - start,
                    action.pipeline, action.stage, action.is_per_window() ? "window" : "microbatch",
                    action.microbatch));
    const bool up = action.kind == ActionKind::Forward;
    if (const auto to = receiver(action, schedule_.stages)) {
      if (schedule_.worker_of(action.pipeline, *to) != worker) add_flow("s", worker, action, action.stage, up, end);
    }
    if (const auto from = sender(action, schedule_.stages)) {
      if (schedule_.worker_of(action.pipeline, *from) != worker) add_flow("f", worker, action, *from, up, start);
    }
  }

  // Both ends of an arrow have the sender's stage in their id.
  void add_flow(const char* phase, int worker, const Action& action, int from_stage, bool up, double at) {
    add(fmt::format(R"({{"name":"{}","cat":"message","ph":"{}",{}"id":"{}:{}:{}:{}","pid":0,"tid":{},"ts":{:.3f}}})",
                    up ? "activation" : "gradient", phase, phase[0] == 'f' ? R"("bp":"e",)" : "", up ? "a" : "g",
                    action.pipeline, from_stage, action.microbatch, worker, at));
  }

  const Schedule& schedule_;
  std::string events_;
};

}  // namespace

void write_trace(const std::filesystem::path& path, const Schedule& schedule,
                 const std::vector<std::vector<TimedAction>>& actions, FileSystem& files) {
  TraceText text(schedule);
  for (size_t worker = 0; worker < actions.size(); ++worker) text.add_worker(static_cast<int>(worker), actions[worker]);
  write_file_atomic(path, text.take(), files);
}

}  // namespace gyre
