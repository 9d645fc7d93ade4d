#include "gyre/report/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "gyre/core/files.h"
#include "gyre/core/replace_in_pieces.h"

namespace gyre {
namespace {

constexpr double kMicroseconds = 1e6;
constexpr size_t kPiece = size_t{1} << 20;  // bytes of the text that are in memory at once

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

// The other stage to which the action sends its result, if any.
std::optional<int> receiver(const Action& action, int stages) {
  if (action.kind == ActionKind::Forward && action.stage + 1 < stages) return action.stage + 1;
  const bool gives_gradient = action.kind == ActionKind::Backward || action.kind == ActionKind::BackwardInput;
  if (gives_gradient && action.stage > 0) return action.stage - 1;
  return std::nullopt;
}
// The other stage from which the action's input comes, if any.
std::optional<int> sender(const Action& action, int stages) {
  if (action.kind == ActionKind::Forward && action.stage > 0) return action.stage - 1;
  const bool takes_gradient = action.kind == ActionKind::Backward || action.kind == ActionKind::BackwardInput;
  if (takes_gradient && action.stage + 1 < stages) return action.stage + 1;
  return std::nullopt;
}

// The id of a message between stages, the same at both ends: it is made from the sender's stage.
std::string message_id(const Action& action, int from_stage) {
  return fmt::format("{}:{}:{}:{}", action.kind == ActionKind::Forward ? "a" : "g", action.pipeline, from_stage,
                     action.microbatch);
}

using Take = std::function<void(std::string_view)>;

// Makes the text, and gives it away in pieces.
class TraceText {
 public:
  TraceText(const Schedule& schedule, const Take& take)
      : schedule_(schedule), take_(take), text_(std::string(kTraceBeginning) + "\n") {}

  // Call for all workers before the first add_worker(), so that all messages' senders are known. Not needed if no
  // action says when its message came.
  void add_senders(const std::vector<TimedAction>& actions) {
    for (const TimedAction& timed : actions) {
      if (receiver(timed.action, schedule_.stages)) sent_[message_id(timed.action, timed.action.stage)] = timed.end;
    }
  }

  void add_worker(int worker, const std::vector<TimedAction>& actions) {
    add(fmt::format(R"({{"name":"thread_name","ph":"M","pid":0,"tid":{0},"args":{{"name":"worker {0}"}}}})", worker));
    for (const TimedAction& timed : actions) add_action(worker, timed);
  }

  void finish() { take_(text_ + "\n]}\n"); }

 private:
  void add(const std::string& event) {
    if (!std::exchange(is_first_, false)) text_ += ",\n";
    text_ += event;
    if (text_.size() >= kPiece) take_(std::exchange(text_, {}));
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
      const int from_worker = schedule_.worker_of(action.pipeline, *from);
      if (from_worker != worker) add_flow("f", worker, action, *from, up, start);
      if (timed.came) add_way(from_worker, action, *from, *timed.came * kMicroseconds);
    }
  }

  // The span of a message from the end of the action that sent it to its arrival. Several may overlap on a link.
  void add_way(int from_worker, const Action& action, int from_stage, double came) {
    const std::string id = message_id(action, from_stage);
    const auto sent = sent_.find(id);
    if (sent == sent_.end()) return;
    const double left = std::min(sent->second * kMicroseconds, came);  // clocks of two processes differ slightly
    for (const auto& [phase, at] : {std::pair('b', left), std::pair('e', came)}) {
      add(fmt::format(R"({{"name":"under way","cat":"link","ph":"{}","id":"{}","pid":0,"tid":{},"ts":{:.3f}}})", phase,
                      id, from_worker, at));
    }
  }

  void add_flow(const char* phase, int worker, const Action& action, int from_stage, bool up, double at) {
    add(fmt::format(R"({{"name":"{}","cat":"message","ph":"{}",{}"id":"{}","pid":0,"tid":{},"ts":{:.3f}}})",
                    up ? "activation" : "gradient", phase, phase[0] == 'f' ? R"("bp":"e",)" : "",
                    message_id(action, from_stage), worker, at));
  }

  const Schedule& schedule_;
  const Take& take_;
  std::string text_;
  bool is_first_ = true;
  std::map<std::string, double> sent_;  // message id -> end of the action that sent it
};

void make_text(const Schedule& schedule, const std::vector<std::vector<TimedAction>>& actions, const Take& take) {
  TraceText text(schedule, take);
  const auto has_way = [](const auto& worker_actions) {
    return std::ranges::any_of(worker_actions, [](const TimedAction& timed) { return timed.came.has_value(); });
  };
  if (std::ranges::any_of(actions, has_way)) {
    for (const auto& worker_actions : actions) text.add_senders(worker_actions);
  }
  for (size_t worker = 0; worker < actions.size(); ++worker) text.add_worker(static_cast<int>(worker), actions[worker]);
  text.finish();
}

}  // namespace

std::string trace_text(const Schedule& schedule, const std::vector<std::vector<TimedAction>>& actions) {
  std::string text;
  make_text(schedule, actions, [&](std::string_view piece) { text += piece; });
  return text;
}

void write_trace(const std::filesystem::path& path, const Schedule& schedule,
                 const std::vector<std::vector<TimedAction>>& actions, FileSystem& files) {
  write_in_pieces_atomic(
      path, [&](const Take& take) { make_text(schedule, actions, take); }, files);
}

}  // namespace gyre
