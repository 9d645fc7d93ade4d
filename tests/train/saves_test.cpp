// Checkpoints that are written in the background: the same bytes as those that training waits for, never more than one
// at a time, and a failure of one ends the run.
#include <fmt/format.h>

#include <pthread.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>

#include "support/forwarding_files.h"
#include "train/fixture.h"

namespace gyre {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing_support::Json;
using testing_support::Runs;
namespace fs = std::filesystem;

// Holds the rename of a checkpoint of one step until the metrics have the line of another; and makes it fail if asked
// to.
class SlowDisk final : public ForwardingFiles {
 public:
  SlowDisk(int64_t checkpoint, int64_t line, bool fails = false)
      : name_(fmt::format("step-{:08}", checkpoint)),
        words_(fmt::format("{{\"event\":\"step\",\"step\":{},", line)),
        fails_(fails) {}

  ssize_t write(int descriptor, const void* data, size_t bytes) override {
    const std::string_view text(static_cast<const char*>(data), bytes);
    const ssize_t put = ForwardingFiles::write(descriptor, data, bytes);
    const std::lock_guard lock(mutex_);
    if (text.starts_with(words_)) {
      line_is_there_ = true;
      if (!is_renamed_) overtaken_ = true;
      changed_.notify_all();
    }
    return put;
  }
  int rename(const Path& from, const Path& to) override {
    if (to.filename() != name_) return ForwardingFiles::rename(from, to);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return line_is_there_; });
    if (fails_) {
      errno = EIO;
      return -1;
    }
    is_renamed_ = true;
    return ForwardingFiles::rename(from, to);
  }
  // Whether training made that update before the checkpoint had its name.
  bool overtaken() const { return overtaken_; }

 private:
  std::string name_, words_;
  bool fails_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool line_is_there_ = false, is_renamed_ = false, overtaken_ = false;
};

class Saves : public Runs {
 protected:
  static std::vector<std::string> beside(std::vector<std::string> more = {}) {
    more.emplace_back("run.checkpoint_background=true");
    return more;
  }
};

TEST_F(Saves, BesideTrainingHaveTheBytesOfThoseThatItWaitsFor) {
  run("waits", {.set = {"run.keep_checkpoints=0", "run.checkpoint_every=2"}});
  run("beside", {.set = beside({"run.keep_checkpoints=0", "run.checkpoint_every=2"})});
  EXPECT_EQ(record("beside"), record("waits"));
  const auto steps = list_checkpoints(path("waits") / "checkpoints");
  EXPECT_EQ(list_checkpoints(path("beside") / "checkpoints"), steps);
  EXPECT_EQ(steps.size(), 6u);
  for (const int64_t step : steps) {
    const std::string name = fmt::format("step-{:08}", step);
    for (const char* file : {"model.safetensors", "optimizer.safetensors", "manifest.json"}) {
      EXPECT_EQ(read_file(path("beside") / "checkpoints" / name / file),
                read_file(path("waits") / "checkpoints" / name / file))
          << step;
    }
  }
  EXPECT_EQ(lines("beside", "checkpoint").size(), 6u);
  for (const Json& line : lines("beside", "checkpoint")) {
    EXPECT_GT(line["write_seconds"], 0);
    EXPECT_GE(line["wait_seconds"], 0);
  }
  EXPECT_GT(lines("beside").back()["save_write_seconds"], 0);
}

TEST_F(Saves, TrainingGoesOnWhileOneIsWritten) {
  for (const std::string executor : {"replay", "threads"}) {
    SlowDisk disk(4, 7);
    fs::remove_all(path("slow"));
    run("slow", {.set = beside({"pipeline.executor=" + executor}), .files = &disk});
    EXPECT_TRUE(disk.overtaken());
    run("quick-" + executor, {.set = beside({"pipeline.executor=" + executor})});
    EXPECT_EQ(tensors("slow"), tensors("quick-" + executor));
    const auto noted = lines("slow", "checkpoint");
    ASSERT_EQ(noted.size(), 3u);
    EXPECT_EQ(noted[0]["step"], 4);
    EXPECT_EQ(noted[2]["step"], 12);
  }
}

TEST_F(Saves, OneThatFailsEndsTheRunAtTheNextDrainAndLeavesNothing) {
  SlowDisk disk(4, 5, /*fails=*/true);
  const std::string error = complaint("failed", {.set = beside(), .files = &disk});
  EXPECT_THAT(error, AllOf(HasSubstr("step-00000004: Input/output error; step 4 was not saved. gyre train --resume"),
                           HasSubstr("continues from the beginning"), ::testing::Not(HasSubstr("\n"))));
  EXPECT_TRUE(list_checkpoints(path("failed") / "checkpoints").empty());
  for (const auto& entry : fs::directory_iterator(path("failed") / "checkpoints")) {
    EXPECT_EQ(entry.path().filename(), ".of-a-run");
  }
  EXPECT_LE(lines("failed", "step").size(), 8u);
  EXPECT_EQ(lines("failed").back()["status"], "failed");
  run("sound");
  resume("failed");
  EXPECT_EQ(record("failed"), record("sound"));
  EXPECT_EQ(tensors("failed"), tensors("sound"));
}

// Throws what no function of gyre's own throws when a file of a checkpoint is created.
class NoMemory final : public ForwardingFiles {
 public:
  int open(const Path& path, int flags, mode_t mode) override {
    if (path.filename() == "model.safetensors" && ++files_ > 1) throw std::bad_alloc();
    return ForwardingFiles::open(path, flags, mode);
  }

 private:
  int files_ = 0;
};

TEST_F(Saves, WhatLibrariesThrowIsAnErrorOfTheSave) {
  for (const bool is_beside : {false, true}) {
    fs::remove_all(path("memory"));
    NoMemory files;
    Session session{.files = &files};
    if (is_beside) session.set = beside();
    EXPECT_THAT(complaint("memory", session), AllOf(HasSubstr("out of memory"), HasSubstr("step 8 was not saved."),
                                                    HasSubstr("continues from step 4")));
    EXPECT_EQ(list_checkpoints(path("memory") / "checkpoints"), std::vector<int64_t>{4});
    EXPECT_EQ(lines("memory").back()["status"], "failed");
  }
}

// A save that cannot have a thread of its own is one that training waits for.
TEST_F(Saves, AThreadThatCannotBeHadIsDoneWithout) {
  run("with one", {.set = beside()});  // libtorch's own threads are there from then on: it waits for them for ever
  pthread_attr_t usual, immense;
  ASSERT_EQ(::pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(::pthread_attr_init(&immense), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&immense, size_t{1} << 47), 0);  // no thread can have that stack
  ASSERT_EQ(::pthread_setattr_default_np(&immense), 0);
  const std::string said = complaint("alone", {.set = beside()});
  EXPECT_EQ(::pthread_setattr_default_np(&usual), 0);
  ::pthread_attr_destroy(&immense);
  ::pthread_attr_destroy(&usual);
  EXPECT_EQ(said, "ran");
  EXPECT_EQ(lines("alone", "checkpoint").size(), 3u);
  EXPECT_EQ(tensors("alone"), tensors("with one"));
}

// The reason why the run ends is reported, whatever fails when the end is recorded.
TEST_F(Saves, ADivergenceStaysOneWhateverItsLastLinesMeet) {
  class NoLastLine final : public ForwardingFiles {
   public:
    ssize_t write(int descriptor, const void* data, size_t bytes) override {
      const std::string_view text(static_cast<const char*>(data), bytes);
      if (text.starts_with("{\"event\":\"end\"")) throw std::bad_alloc();
      return ForwardingFiles::write(descriptor, data, bytes);
    }
  } files;
  EXPECT_THROW(run("diverged", {.set = beside({"optimizer.lr=1e5", "optimizer.clip=0"}), .files = &files}), Divergence);
}

// A session that is stopped at the step where it continued writes no checkpoint: it would save the same state.
TEST_F(Saves, AStepThatIsSavedIsNotSavedAgain) {
  class Exchanges final : public ForwardingFiles {
   public:
    int exchange(const Path& a, const Path& b) override {
      ++count;
      return ForwardingFiles::exchange(a, b);
    }
    int count = 0;
  } files;
  run("still", {.set = {"run.updates=4"}});
  std::stop_source stop;
  const TrainResult result = run(
      "still", {.set = {"run.updates=12"}, .resume = true, .files = &files, .stop = stop.get_token(), .on_begun = [&] {
                  stop.request_stop();
                }});
  EXPECT_FALSE(result.finished);
  EXPECT_EQ(result.step, 4);
  EXPECT_EQ(files.count, 0);
  EXPECT_EQ(list_checkpoints(path("still") / "checkpoints"), std::vector<int64_t>{4});
  run("straight on", {.set = {"run.updates=4"}});
  for (const char* name : {"still", "straight on"}) resume(name, {"run.updates=12"});
  EXPECT_EQ(tensors("still"), tensors("straight on"));
}

// Whatever ends the run, a checkpoint that is being written is completed, and counts.
// A request that comes during an evaluation is answered by the save that is planned after it. One more would drain the
// pipeline once more, which changes the bits of an asynchronous run.
TEST_F(Saves, ARequestIsAnsweredByThePlannedOne) {
  bool asked = false;
  const auto once = [&] { return !std::exchange(asked, asked || !lines("run", "eval").empty()) && asked; };
  run("run", {.set = {"run.eval_every=10", "run.checkpoint_every=10"}, .take_save_request = once});
  EXPECT_TRUE(asked);
  std::vector<int> steps;
  for (const Json& save : lines("run", "checkpoint")) steps.push_back(save["step"]);
  EXPECT_EQ(steps, (std::vector<int>{10, 12}));
  EXPECT_TRUE(lines("run", "drain").empty());
}

TEST_F(Saves, AnErrorWaitsForOneAndNamesIt) {
  const fs::path tokens = root() / "tokens" / "train.bin";
  const std::string before = read_file(tokens);
  class CutsTokens final : public ForwardingFiles {
   public:
    explicit CutsTokens(fs::path tokens) : tokens_(std::move(tokens)) {}
    int rename(const Path& from, const Path& to) override {
      if (to.filename() == "step-00000004") fs::resize_file(tokens_, 1100);
      return ForwardingFiles::rename(from, to);
    }

   private:
    fs::path tokens_;
  } disk(tokens);
  const std::string error = complaint("cut", {.set = beside({"run.checkpoint_every=4"}), .files = &disk});
  std::ofstream(tokens, std::ios::binary) << before;
  EXPECT_THAT(error, HasSubstr("continues from step 4"));
  EXPECT_EQ(list_checkpoints(path("cut") / "checkpoints"), std::vector<int64_t>{4});
}

TEST_F(Saves, SomeAreKeptForEver) {
  run("kept", {.set = {"run.checkpoint_every=1", "run.keep_checkpoints=2", "run.keep_every=5"}});
  EXPECT_EQ(list_checkpoints(path("kept") / "checkpoints"), (std::vector<int64_t>{5, 10, 11, 12}));
  EXPECT_THAT(messages(), HasSubstr("keeps the newest 2 (keep_checkpoints) and those of every 5 updates (keep_every)"));
}

TEST_F(Saves, ARunSaysWhereAndHowOftenItSaves) {
  run("says", {.set = {"run.updates=1", "run.checkpoint_minutes=10"}});
  EXPECT_THAT(messages(), HasSubstr("saves to " + (path("says") / "checkpoints").string() +
                                    " every 4 updates (checkpoint_every), 10 minutes after the last save "
                                    "(checkpoint_minutes), when interrupted and at its end; keeps the newest 3 "
                                    "(keep_checkpoints)"));
}

}  // namespace
}  // namespace gyre
