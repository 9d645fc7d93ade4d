// processes: workers' threads in several processes. Rank 0 runs the loop over segments; its executor sends the others
// commands, which carry_out_commands() carries out.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/runtime/executor.h"
#include "gyre/runtime/rank_map.h"
#include "gyre/runtime/ranks/ranks.h"
#include "gyre/runtime/ranks/text_line.h"

namespace gyre {

// Rank 0's executor, in place of make_executor's. Both arguments must outlive it. RunError also reports what goes wrong
// in other processes, and names them. If neither end_run() nor fail_run() was called, the destructor tells the
// others that the run failed.
class ProcessesExecutor final : public Executor {
 public:
  ProcessesExecutor(Ranks& ranks, const RankMap& map);
  ~ProcessesExecutor() override;
  SegmentReport run(Pipeline& pipeline, const Segment& segment, SegmentObserver& observer) override;
  void end_run(RunEnd end) override;
  void fail_run(int exit_code) override;
  // Is told which rank has kept rank 0 waiting for an answer for so long, once for each.
  struct WhenLate {
    double seconds = 0;
    std::function<void(int rank)> tell;
  };
  // Between segments: the other ranks' answers to the question, [rank]; rank 0's own is empty. `meanwhile` runs while
  // they work on it. Throws RunError if one of them cannot go on.
  std::vector<std::string> ask(const std::string& question, const std::function<void()>& meanwhile,
                               const WhenLate& late);

 private:
  Ranks& ranks_;
  const RankMap& map_;
  std::vector<std::unique_ptr<TextLine>> questions_;  // [rank]
  int64_t segments_ = 0;
  bool told_end_ = false;
  bool room_is_known_ = false;
};

// What the other ranks need to carry out rank 0's commands.
struct FollowerSources {
  const BatchSource* train = nullptr;                          // may be another one after answer()
  const BatchSource* evaluation = nullptr;                     // null: the run does not evaluate
  std::function<std::string(const std::string&)> answer = {};  // answers a question of rank 0
  std::stop_token stop = {};  // requested if this process is asked to stop: rank 0 is told, and decides
  // Ends the process. Called when the run has failed and a worker of this process does not return from an action. If
  // null, the process waits for it.
  std::function<void(const Error&)> abandon = {};
};

// On the other ranks: carries out rank 0's commands until the run has ended. If this process or the run cannot go on,
// rank 0 is told, if it can be reached. Throws ToldElsewhere then, or the error itself if rank 0 is gone and so cannot
// report it.
RunEnd carry_out_commands(Pipeline& pipeline, Ranks& ranks, const RankMap& map, const FollowerSources& sources);

}  // namespace gyre
