// Somebody moves, removes or edits a run's files while it runs: it ends with an error that says which, before a
// checkpoint is written that would not fit the rest; nothing is made anew in the place of what is gone.
#include <fmt/format.h>

#include <fstream>
#include <functional>

#include "support/forwarding_files.h"
#include "train/fixture.h"

namespace gyre {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing_support::Runs;
namespace fs = std::filesystem;

// Does something once the metrics' line of a step is written.
class Meddler final : public ForwardingFiles {
 public:
  Meddler(int64_t step, std::function<void()> meddle)
      : words_(fmt::format("{{\"event\":\"step\",\"step\":{},", step)), meddle_(std::move(meddle)) {}
  ssize_t write(int descriptor, const void* data, size_t bytes) override {
    const ssize_t put = ForwardingFiles::write(descriptor, data, bytes);
    if (std::string_view(static_cast<const char*>(data), bytes).starts_with(words_)) meddle_();
    return put;
  }

 private:
  std::string words_;
  std::function<void()> meddle_;
};

class Meddling : public Runs {
 protected:
  // What the run says when `meddle` happens after step 6, between the checkpoints of steps 4 and 8.
  std::string complaint_after(const std::string& name, std::function<void()> meddle) {
    Meddler files(6, std::move(meddle));
    return complaint(name, {.files = &files});
  }
  std::string unsaved(const std::string& name) const {
    return fmt::format(
        "step 8 was not saved. After that gyre train --resume {} continues from step 4, the last that was saved",
        path(name).string());
  }
};

TEST_F(Meddling, ARunThatWasMovedIsNotContinuedElsewhere) {
  EXPECT_THAT(
      complaint_after("moved", [] { fs::rename(path("moved"), path("elsewhere")); }),
      AllOf(HasSubstr("moved: was moved or removed while the run was writing to it"), HasSubstr(unsaved("moved"))));
  EXPECT_FALSE(fs::exists(path("moved")));
  fs::rename(path("elsewhere"), path("moved"));
  run("whole");
  resume("moved");
  EXPECT_EQ(record("moved"), record("whole"));
  EXPECT_EQ(tensors("moved"), tensors("whole"));
}

// Files of a checkpoint are missing then, and one that could not be written has nothing to do with room.
TEST_F(Meddling, ARunThatIsMovedDuringASaveIsNotTakenForAFullDisk) {
  class Moves final : public ForwardingFiles {
   public:
    int open(const Path& file, int flags, mode_t mode) override {
      if (file.filename() == "optimizer.safetensors" && fs::exists(path("hastily"))) {
        fs::rename(path("hastily"), path("away"));
      }
      return ForwardingFiles::open(file, flags, mode);
    }
  } files;
  EXPECT_THAT(complaint("hastily", {.files = &files}),
              AllOf(HasSubstr("hastily: was moved or removed while the run was writing to it"),
                    HasSubstr("step 4 was not saved. After that gyre train --resume"), Not(HasSubstr("It takes"))));
}

TEST_F(Meddling, ARunThatWasRemovedIsNotMadeAnew) {
  EXPECT_THAT(complaint_after("gone", [] { fs::remove_all(path("gone")); }), HasSubstr("gone: was moved or removed"));
  EXPECT_FALSE(fs::exists(path("gone")));
}

// As where the disk of checkpoints/ was unmounted: an empty directory is in its place.
TEST_F(Meddling, CheckpointsThatWentAwayAreNotMadeAnew) {
  const fs::path checkpoints = path("unmounted") / "checkpoints";
  EXPECT_THAT(complaint_after("unmounted",
                              [&] {
                                fs::rename(checkpoints, path("disk"));
                                fs::create_directory(checkpoints);
                              }),
              AllOf(HasSubstr(checkpoints.string() + ": was moved or removed"), HasSubstr(unsaved("unmounted"))));
  EXPECT_TRUE(fs::is_empty(checkpoints));
}

TEST_F(Meddling, ACheckpointDoesNotCountWithoutItsMetrics) {
  const fs::path metrics = path("rotated") / "metrics.jsonl";
  for (const auto& [meddle, words] : std::vector<std::pair<std::function<void()>, std::string>>{
           {[&] { fs::remove(metrics); }, "was removed or moved while the run was writing to it"},
           {[&] { fs::rename(metrics, path("old")); }, "was removed or moved while the run was writing to it"},
           {[&] { fs::resize_file(metrics, 0); }, "was changed while the run was writing to it"},
           {[&] { std::ofstream(metrics, std::ios::app) << "{}\n"; }, "was changed while the run was writing to it"}}) {
    fs::remove_all(path("rotated"));
    EXPECT_THAT(complaint_after("rotated", meddle), AllOf(HasSubstr(words), HasSubstr(unsaved("rotated"))));
    EXPECT_EQ(list_checkpoints(path("rotated") / "checkpoints"), std::vector<int64_t>{4});
  }
}

TEST_F(Meddling, TokensEditedInPlaceAreNotTrainedOnUnnoticed) {
  const fs::path tokens = root() / "tokens" / "train.bin";
  const std::string before = read_file(tokens);
  const auto edit = [&](const std::string& content) {
    std::ofstream(tokens, std::ios::binary | std::ios::in)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
  };
  std::string other = before;
  for (size_t i = other.size() / 2; i < other.size(); ++i) other[i] = 0;  // tokens of the vocabulary
  EXPECT_THAT(complaint_after("edited", [&] { edit(other); }),
              AllOf(HasSubstr("train.bin: was changed while in use"), HasSubstr(unsaved("edited"))));
  edit(before);
  run("unedited");
  resume("edited");
  EXPECT_EQ(tensors("edited"), tensors("unedited"));
  // The same content under another time is the same.
  EXPECT_EQ(complaint_after("touched", [&] { edit(before); }), "ran");
}

TEST_F(Meddling, TokensCutShortEndTheRunAndSayHowToGoOn) {
  const fs::path tokens = root() / "tokens" / "train.bin";
  const std::string before = read_file(tokens);
  EXPECT_THAT(complaint_after("cut", [&] { fs::resize_file(tokens, 1100); }),
              AllOf(HasSubstr("was cut short while in use"),
                    HasSubstr("gyre train --resume " + path("cut").string() + " continues from step 4")));
  std::ofstream(tokens, std::ios::binary) << before;
}

}  // namespace
}  // namespace gyre
