// Runs whose disk has too little room for their checkpoints, or lets none be written.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gyre/checkpoint/checkpoint.h"
#include "gyre/train/disk_room.h"
#include "support/faulty_files.h"
#include "support/forwarding_files.h"
#include "support/temporary_directory.h"
#include "train/fixture.h"

namespace gyre {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class DiskRoom : public testing_support::Runs {};

// A disk with room for a given number of bytes, which also remembers what was there when a checkpoint was begun.
class SmallDisk final : public ForwardingFiles {
 public:
  SmallDisk(int64_t free, fs::path checkpoints) : free_(free), checkpoints_(std::move(checkpoints)) {}
  int64_t free_bytes(const Path&) override { return free_; }
  int make_directory(const Path& path) override {
    const std::string name = path.filename().string();
    if (name.rfind(".tmp-step", 0) == 0) {
      found_.push_back(list_checkpoints(checkpoints_));
      if (after_) free_ = *after_;
    }
    return ForwardingFiles::make_directory(path);
  }
  void becomes(int64_t free) { after_ = free; }
  const std::vector<std::vector<int64_t>>& found() const { return found_; }

 private:
  int64_t free_;
  std::optional<int64_t> after_;
  fs::path checkpoints_;
  std::vector<std::vector<int64_t>> found_;
};

TEST_F(DiskRoom, RoomIsLookedForBeforeTheFirstUpdate) {
  SmallDisk disk(100'000, path("small") / "checkpoints");
  const std::string error = complaint("small", {.files = &disk});
  EXPECT_THAT(error, HasSubstr("a checkpoint needs 1."));
  EXPECT_THAT(error, HasSubstr("and 97.7 KiB are free there; free "));
  EXPECT_FALSE(fs::exists(path("small") / "config.toml"));
  EXPECT_FALSE(fs::exists(path("small") / "metrics.jsonl"));
}

// Otherwise all updates up to the first save would be lost.
TEST_F(DiskRoom, CheckpointsThatCannotBeWrittenAreToldBeforeTheFirstUpdate) {
  constexpr int kCannot = 77;
  const testing_support::TemporaryDirectory directory;
  fs::permissions(directory.path(), fs::perms(0755));
  const RunDirectory run(directory.path());
  fs::create_directory(run.checkpoints());
  fs::permissions(run.checkpoints(), fs::perms(0555));
  const pid_t child = ::fork();
  if (child == 0) {
    if (::getuid() == 0 && ::setuid(65534) != 0) ::_exit(kCannot);  // root may write everywhere
    try {
      check_room(run, 1, {}, system_files());
    } catch (const InputError& error) {
      ::_exit(std::string(error.what()).ends_with(": cannot be written to: Permission denied; make it writable") ? 0
                                                                                                                 : 1);
    }
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kCannot) GTEST_SKIP() << "this root cannot become another user";
  EXPECT_EQ(status, 0);
}

// Of a checkpoint at any update: one between a refresh in the background and its taking has the next bases too.
TEST_F(DiskRoom, TheRoomIsThatOfTheLargestCheckpoint) {
  const std::vector<std::string> set = {"optimizer.kind=\"basis-rotation\"", "optimizer.basis-rotation.interval=4",
                                        "optimizer.basis-rotation.refresh_lag=2", "model.width=64"};
  run("saved", {.set = set});
  double largest = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path("saved") / "checkpoints" / "step-00000012")) {
    largest += static_cast<double>(entry.file_size());
  }
  SmallDisk disk(static_cast<int64_t>(largest), path("no room") / "checkpoints");
  EXPECT_THAT(complaint("no room", {.set = set, .files = &disk}), HasSubstr("a checkpoint needs "));
  EXPECT_EQ(checkpoint("saved").optimizer.count("blocks.0.attention.projection.weight/left_next_basis"), 1U);
}

TEST_F(DiskRoom, ObsoleteCheckpointsGoFirstWhereRoomIsShort) {
  SmallDisk disk(int64_t{1} << 40, path("short") / "checkpoints");
  disk.becomes(0);  // after the first
  run("short", {.set = {"run.keep_checkpoints=2", "run.checkpoint_every=2"}, .files = &disk});
  EXPECT_EQ(disk.found(), (std::vector<std::vector<int64_t>>{{}, {2}, {4}, {6}, {8}, {10}}))
      << "one stays, whatever happens";
  EXPECT_EQ(list_checkpoints(path("short") / "checkpoints"), (std::vector<int64_t>{10, 12}));
  SmallDisk roomy(int64_t{1} << 40, path("roomy") / "checkpoints");
  run("roomy", {.set = {"run.keep_checkpoints=2"}, .files = &roomy});
  EXPECT_EQ(roomy.found(), (std::vector<std::vector<int64_t>>{{}, {4}, {4, 8}}));
}

TEST_F(DiskRoom, AFailedSaveSaysHowToGoOn) {
  std::vector<std::string> errors;
  for (int64_t at = 0;; ++at) {
    fs::remove_all(path("full"));
    FaultyFiles files(at, Fault::FullDisk);
    const std::string error = complaint("full", {.files = &files});
    if (!files.struck()) break;
    if (error.find("was not saved") != std::string::npos) errors.push_back(error);
  }
  const std::string how = "gyre train --resume " + path("full").string() + " continues from ";
  ASSERT_FALSE(errors.empty());
  EXPECT_THAT(errors.front(), HasSubstr("step 4 was not saved. It takes 1."));
  EXPECT_THAT(errors.front(), HasSubstr(how + "the beginning"));
  EXPECT_THAT(errors.back(), HasSubstr("step 12 was not saved"));
  EXPECT_THAT(errors.back(), HasSubstr(how + "step 8, the last that was saved"));
}

}  // namespace
}  // namespace gyre
