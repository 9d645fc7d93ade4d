// processes: workers' threads in several processes. Rank 0 runs the loop over segments, and its executor tells the
// others what to run; they follow.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "gyre/runtime/executor.h"
#include "gyre/runtime/rank_map.h"
#include "gyre/runtime/ranks/ranks.h"
#include "gyre/runtime/ranks/text_line.h"

namespace gyre {

// Of rank 0, in place of make_executor's. Both outlive it. RunError also for what goes wrong in other processes, which
// it names. Unless ended() was called, its destructor tells the others that the run has failed.
class ProcessesExecutor final : public Executor {
 public:
  ProcessesExecutor(Ranks& ranks, const RankMap& map);
  ~ProcessesExecutor() override;
  SegmentReport run(Pipeline& pipeline, const Segment& segment, SegmentObserver& observer) override;
  void ended(RunEnd end) override;
  // Between segments: what the others answer to it, [rank]; rank 0's own is empty. `meanwhile` is done while they
  // think. RunError when one of them cannot go on.
  std::vector<std::string> ask(const std::string& question, const std::function<void()>& meanwhile = {});

 private:
  void raise_failure() const;

  Ranks& ranks_;
  const RankMap& map_;
  std::vector<std::unique_ptr<TextLine>> questions_;  // [rank]
  int64_t segments_ = 0;
  bool told_end_ = false;
  bool room_is_known_ = false;
};

// What another rank has of a run, for whatever it is told to run.
struct FollowerSources {
  const BatchSource* train = nullptr;
  const BatchSource* evaluation = nullptr;                     // null: the run does not evaluate
  std::function<std::string(const std::string&)> answer = {};  // to what rank 0 asks
  std::stop_token stop = {};  // this process was asked to stop: rank 0 hears of it, and decides
};

// The other ranks: do what rank 0 tells until the run has ended. RunError when this process, or the run, cannot go on;
// rank 0 knows of it then, if it can be reached.
RunEnd follow(Pipeline& pipeline, Ranks& ranks, const RankMap& map, const FollowerSources& sources);

}  // namespace gyre
