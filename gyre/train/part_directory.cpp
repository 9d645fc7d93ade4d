#include "gyre/train/part_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/train/resume.h"

namespace gyre {
namespace {

void refuse_what_is_there(const RunDirectory& run, const PartsMark& mark, bool resume) {
  const auto there = run.read_parts_mark();
  const std::string root = run.root().string();
  if ((there && !there->is_of_parts()) || is_there(run.metrics())) {
    throw InputError(
        fmt::format("{}: is a run's own directory, not one for a host's parts of checkpoints; start rank 0 on the host "
                    "that has it, or choose another --out on this host",
                    root));
  }
  if (there && there->run != mark.run) {
    throw InputError(
        fmt::format("{}: has parts of another run, whose directory is {} on {}; choose another --out on this host",
                    root, there->directory, there->host));
  }
  if (!resume) refuse_to_replace_run(run);
}

}  // namespace

PartDirectory::PartDirectory(const RunDirectory& run, const Config& config, PartsMark mark, bool resume,
                             const std::string& token, FileSystem& files)
    : run_(run), config_(config), mark_(std::move(mark)), files_(files), lock_(run.root(), files) {
  refuse_what_is_there(run, mark_, resume);
  lock_.leave_note(token);
}

void PartDirectory::check_room(int64_t bytes) {
  needed_ = with_margin(bytes);
  gyre::check_room(run_, needed_, {config_.run.keep_checkpoints, config_.run.keep_every}, files_);
}

void PartDirectory::begin(const std::vector<int64_t>& damaged, const std::vector<int64_t>& steps) {
  const Dataset data = Dataset::open(config_.data);
  run_.create(config_, &data);
  run_.write_parts_mark(mark_);
  const auto listed = list_checkpoints(run_.checkpoints());
  for (const int64_t step : damaged) {
    if (std::find(listed.begin(), listed.end(), step) != listed.end()) set_aside(run_.checkpoints(), step, files_);
  }
  keep_only(steps);
}

}  // namespace gyre
