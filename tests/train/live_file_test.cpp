// live.json of runs: what is in it while they run, that it changes no bit of them, and that a run survives its loss.
#include "gyre/train/live_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "gyre/core/host_name.h"
#include "support/forwarding_files.h"
#include "train/ranked_fixture.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing_support::RankedRuns;

struct LiveFileTest : RankedRuns {
  LiveRun live(const std::string& name) const {
    return parse_live_run(read_file(path(name) / "live.json"), "live.json");
  }
};

std::vector<fs::path> temporary_files(const fs::path& run) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    if (entry.path().string().find(".tmp") != std::string::npos) found.push_back(entry.path());
  }
  return found;
}

// What each version of live.json was, before the next took its place.
struct LiveWatcher final : ForwardingFiles {
  int rename(const Path& from, const Path& to) override {
    if (to.filename() == "live.json") {
      if (full) {
        errno = ENOSPC;
        return -1;
      }
      seen.push_back(parse_live_run(read_file(from), "live.json"));
    }
    return ForwardingFiles::rename(from, to);
  }
  bool full = false;
  std::vector<LiveRun> seen;
};

TEST_F(LiveFileTest, ARunSaysWhatItsWorkersDo) {
  LiveWatcher files;
  run("live", {.set = {"run.live_seconds=1e-6", "pipeline.executor=threads"}, .files = &files});
  std::set<std::string> states;
  const LiveRun* last = nullptr;
  for (const LiveRun& seen : files.seen) {
    states.insert(seen.state);
    EXPECT_EQ(seen.host, host_name());
    EXPECT_EQ(seen.pid, ::getpid());
    EXPECT_EQ(seen.updates, 12);
    for (const LiveWorker& worker : seen.workers) {
      double all = worker.busy.value_or(-1);
      for (const LiveWorker::Wait& wait : worker.waits) {
        EXPECT_NE(wait.worker, worker.worker);
        all += wait.share;
      }
      EXPECT_GE(all, 0);
      EXPECT_LE(all, 1.03);  // small shares are left out, and each of the others is clamped
    }
    if (seen.workers.size() == 3) last = &seen;
  }
  EXPECT_THAT(states, ::testing::ElementsAre("evaluating", "finished", "saving", "starting", "training"));
  ASSERT_NE(last, nullptr);
  EXPECT_GE(files.seen.back().seconds, lines("live", "end")[0]["seconds"].get<double>())
      << "from the session's beginning, as in the metrics";
  EXPECT_EQ(files.seen.back().step, 12);
  EXPECT_TRUE(files.seen.back().ended());
  EXPECT_EQ(files.seen.back().delays.size(), 3u);
  ASSERT_EQ(files.seen.back().processes.size(), 1u);
  EXPECT_GT(files.seen.back().processes[0].peak_resident, 1 << 20);
}

TEST_F(LiveFileTest, ChangesNoBit) {
  for (const std::string executor : {"replay", "threads"}) {
    const std::string set = "pipeline.executor=" + executor;
    run("without-" + executor, {.set = {"run.live_seconds=0", set}});
    EXPECT_FALSE(fs::exists(path("without-" + executor) / "live.json"));
    run("with-" + executor, {.set = {"run.live_seconds=1e-6", set}});
    EXPECT_EQ(live("with-" + executor).state, "finished");
    EXPECT_THAT(temporary_files(path("with-" + executor)), IsEmpty());
    EXPECT_EQ(record("with-" + executor), record("without-" + executor));
    EXPECT_EQ(contents("with-" + executor), contents("without-" + executor));
    EXPECT_EQ(read_file(saved("with-" + executor, "12") / "model.safetensors"),
              read_file(saved("without-" + executor, "12") / "model.safetensors"));
  }
  expect_sound(run_ranks("ranks", {.set = {"run.live_seconds=1e-6"}}, 3));
  EXPECT_EQ(record("ranks"), record("without-replay"));
  EXPECT_EQ(contents("ranks"), contents("without-replay"));
  EXPECT_EQ(live("ranks").processes.size(), 3u);
}

TEST_F(LiveFileTest, ADiskThatIsFullIsSaidOnce) {
  LiveWatcher files;
  files.full = true;
  run("full", {.set = {"run.live_seconds=1e-6"}, .files = &files});
  const std::string said = messages();
  const size_t first = said.find("live.json");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_THAT(said.substr(first), HasSubstr("the run goes on without that file"));
  const size_t line = said.find('\n', first);
  EXPECT_EQ(said.find("live.json", line), std::string::npos) << said;
  EXPECT_FALSE(fs::exists(path("full") / "live.json"));
  EXPECT_THAT(temporary_files(path("full")), IsEmpty());
  EXPECT_EQ(lines("full", "step").size(), 12u);
}

// As where a disk had no room for a moment.
TEST_F(LiveFileTest, IsWrittenAgainWhereItCouldNotBeBefore) {
  LiveWatcher files;
  const fs::path root = path("again");
  fs::create_directory(root);
  Progress progress(stderr, false);
  Config config;
  LiveFile live(RunDirectory(root), config, LiveFile::Clock::now(), 0, 0, progress, files);
  files.full = true;
  live.look({});
  files.full = false;
  live.end("finished");
  EXPECT_EQ(this->live("again").state, "finished");
}

TEST_F(LiveFileTest, ASessionThatWritesNoneRemovesTheLastOnes) {
  run("off", {.set = {"run.updates=4", "run.live_seconds=1"}});
  EXPECT_EQ(live("off").state, "finished");
  resume("off", {"run.updates=8", "run.live_seconds=0"});
  EXPECT_FALSE(fs::exists(path("off") / "live.json"));
}

// Shares are of the time between two looks, and begin anew with a segment.
TEST_F(LiveFileTest, SharesAreOfTheTimeSinceTheLastLook) {
  LiveWatcher files;
  const fs::path root = path("shares");
  fs::create_directory(root);
  const RunDirectory run(root);
  Progress progress(stderr, false);
  Config config;
  config.run.live_seconds = 1e-6;
  LiveFile live(run, config, LiveFile::Clock::now(), 0, 0, progress, files);
  WorkerStatus worker;
  worker.action = "0F1";
  worker.needs = "something";
  worker.seconds = 10;
  worker.waited = {{1, 6.0}, {kNobody, 2.0}};
  const auto look = [&] {
    RankStatus process;
    process.workers = {worker};
    live.look({process});
    return files.seen.back().workers.at(0);
  };
  LiveWorker seen = look();
  EXPECT_NEAR(*seen.busy, 0.2, 1e-9);
  EXPECT_EQ(seen.waits, (std::vector<LiveWorker::Wait>{{1, 0.6}, {-1, 0.2}}));
  worker.seconds = 12;
  worker.waited[2] = 1.5;
  seen = look();
  EXPECT_NEAR(*seen.busy, 0.25, 1e-9);
  EXPECT_EQ(seen.waits, (std::vector<LiveWorker::Wait>{{2, 0.75}}));
  EXPECT_EQ(look().waits, seen.waits);  // nothing new was heard
  worker.seconds = 2;                   // another segment
  worker.waited = {{1, 1.0}};
  worker.inside = true;
  seen = look();
  EXPECT_NEAR(*seen.busy, 0.5, 1e-9);
  EXPECT_EQ(seen.needs, "");
}

}  // namespace
}  // namespace gyre
