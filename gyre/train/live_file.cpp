#include "gyre/train/live_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/host_name.h"
#include "gyre/core/process_space.h"
#include "gyre/core/timing.h"

namespace gyre {
namespace {

constexpr double kMinShare = 0.005;  // of the time; shorter waits are not listed
// A change of state is written only if the last write is at least so many periods ago, since states may change often.
constexpr double kMinPeriods = 0.1;

}  // namespace

LiveFile::LiveFile(const RunDirectory& run, const Config& config, Clock::time_point started, int64_t step,
                   int64_t tokens, Progress& progress, FileSystem& files)
    : path_(run.live()), progress_(progress), files_(files), writes_(config.run.live_seconds > 0), started_(started) {
  if (!writes_) {
    if (is_there(path_)) files_.remove(path_);
    return;
  }
  run_.period = config.run.live_seconds;
  run_.host = host_name();
  run_.pid = ::getpid();
  run_.pid_space = process_space();
  run_.pid_started = process_started(run_.pid).value_or(0);
  run_.step = step;
  run_.updates = config.run.updates;
  run_.tokens = tokens;
  write();
}

void LiveFile::enter(const std::string& state) {
  if (state == run_.state) return;
  run_.state = state;
  if (seconds_between(written_, Clock::now()) >= kMinPeriods * run_.period) write();
}

void LiveFile::step(const MetricsStep& line) {
  run_.step = line.step;
  run_.tokens = line.tokens;
  run_.loss = line.loss;
  run_.lr = line.lr;
  run_.grad_norm = line.grad_norm;
  run_.tokens_per_second = line.tokens_per_second;
}

LiveFile::Clock::time_point LiveFile::next_look() const {
  if (!writes_) return Clock::time_point::max();
  const std::chrono::duration<double> period(std::min(run_.period, 1e6));  // must not overflow the clock
  return looked_ + std::chrono::duration_cast<Clock::duration>(period);
}

void LiveFile::look(const std::vector<RankStatus>& processes) {
  if (!writes_) return;
  looked_ = Clock::now();
  run_.processes.resize(processes.size());
  std::map<size_t, double> late;
  std::map<size_t, int64_t> gradients;
  for (size_t process = 0; process < processes.size(); ++process) {
    const RankStatus& status = processes[process];
    const ProcessMemory& memory = status.memory;
    run_.processes[process] = {memory.resident, memory.peak_resident, memory.tensors, memory.peak_tensors};
    if (status.workers.empty()) continue;  // between segments
    // A worker of the process that is not reported has nothing to do in this segment.
    for (auto& [number, worker] : workers_) {
      if (worker.process != static_cast<int64_t>(process)) continue;
      const auto is_worker = [number = number](const WorkerStatus& reported) { return reported.worker == number; };
      if (std::ranges::any_of(status.workers, is_worker)) continue;
      worker = {};
      worker.worker = number;
      worker.process = static_cast<int64_t>(process);
      worker.busy = 0;
      seen_.erase(number);
    }
    for (const WorkerStatus& worker : status.workers) {
      take(worker, static_cast<int>(process));
      for (const auto& [stage, seen] : worker.delays) {
        late[static_cast<size_t>(stage)] += seen.sum;
        gradients[static_cast<size_t>(stage)] += seen.gradients;
      }
    }
  }
  for (const auto& [stage, count] : gradients) {
    run_.delays.resize(std::max(run_.delays.size(), stage + 1));
    run_.delays[stage] = late[stage] / static_cast<double>(count);
  }
  write();
}

void LiveFile::take(const WorkerStatus& now, int process) {
  const WorkerStatus before = std::exchange(seen_[now.worker], now);
  LiveWorker& worker = workers_[now.worker];
  worker.worker = now.worker;
  worker.process = process;
  worker.action = now.action;
  worker.needs = now.inside || now.action.empty() ? "" : now.needs;
  worker.activations = now.activations;
  worker.gradients = now.gradients;
  worker.others = now.others;
  if (now.takes_turns) {
    worker.busy.reset();
    worker.waits.clear();
    return;
  }
  if (now.seconds == before.seconds) return;          // nothing was reported since
  const bool goes_on = now.seconds > before.seconds;  // the same segment
  const double seconds = goes_on ? now.seconds - before.seconds : now.seconds;
  double busy = 1;
  worker.waits.clear();
  for (const auto& [other, waited] : now.waited) {
    const auto earlier = before.waited.find(other);
    const double since = goes_on && earlier != before.waited.end() ? waited - earlier->second : waited;
    const double share = std::clamp(since / seconds, 0.0, 1.0);
    busy -= share;
    if (share >= kMinShare) worker.waits.push_back({other, share});
  }
  worker.busy = std::max(0.0, busy);
  std::ranges::stable_sort(worker.waits, [](const auto& a, const auto& b) { return a.share > b.share; });
}

void LiveFile::end(const std::string& status) {
  run_.state = status;
  write();
}

void LiveFile::write() {
  if (!writes_) return;
  written_ = Clock::now();
  run_.written = unix_seconds();
  run_.seconds = seconds_between(started_, written_);
  run_.seconds_left = progress_.seconds_left();
  run_.workers.clear();
  for (const auto& [number, worker] : workers_) run_.workers.push_back(worker);
  try {
    replace_file(path_, to_json(run_), files_);
  } catch (const Error& error) {
    if (std::exchange(said_, true)) return;
    progress_.message(
        fmt::format("{}; the run goes on without that file, and tries again when it is due", error.what()));
  }
}

}  // namespace gyre
