// Checkpoints: exact round trips, every flipped byte noticed, writes that fail at any point leave nothing half-written.
#include "gyre/checkpoint/checkpoint.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "checkpoint/fixture.h"
#include "gyre/checkpoint/format/parts_mark.h"
#include "support/faulty_files.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using namespace testing_support;
namespace fs = std::filesystem;

TEST(Checkpoint, RoundTripsAndKeepsTheNewest) {
  const testing_support::TemporaryDirectory place;
  const fs::path& directory = place.path();
  for (const int64_t step : {10, 20, 30, 40}) save_checkpoint(directory, make_state(step), 2);
  EXPECT_EQ(list_checkpoints(directory), (std::vector<int64_t>{30, 40}));
  const CheckpointState state = load_checkpoint(directory, 40), expected = make_state(40);
  EXPECT_TRUE(same(state.weights, expected.weights));
  EXPECT_TRUE(same(state.optimizer, expected.optimizer));
  EXPECT_EQ(state.drains, expected.drains);
  EXPECT_EQ(state.model, expected.model);
  EXPECT_EQ(state.tokens, 16000);
  EXPECT_EQ(state.delay, expected.delay);
  EXPECT_EQ(state.skipped, 2);
  save_checkpoint(directory, make_state(40), 0);  // again, as a resumed run does
  EXPECT_TRUE(same(load_checkpoint(directory, 40).weights, expected.weights));
}

TEST(Checkpoint, EveryFlippedByteIsNoticed) {
  const testing_support::TemporaryDirectory place;
  const fs::path& directory = place.path();
  save_checkpoint(directory, make_state(5), 0);
  save_checkpoint(directory, make_state(6), 0);
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "manifest.json"}) {
    const fs::path file = directory / "step-00000006" / name;
    const std::string content = read_file(file);
    for (size_t i = 0; i < content.size(); ++i) {
      std::string flipped = content;
      flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
      std::ofstream(file, std::ios::binary) << flipped;
      try {
        load_checkpoint(directory, 6);
        ADD_FAILURE() << name << " byte " << i;
      } catch (const InputError& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr("step-00000006"));
      }
    }
    std::ofstream(file, std::ios::binary) << content.substr(0, content.size() / 2);
    EXPECT_THROW(load_checkpoint(directory, 6), InputError);
    fs::remove(file);
    EXPECT_THROW(load_checkpoint(directory, 6), InputError);
    std::ofstream(file, std::ios::binary) << content;
  }
  EXPECT_NO_THROW(load_checkpoint(directory, 6));
  try {
    std::ofstream(directory / "step-00000006" / "manifest.json") << "{}";
    load_checkpoint(directory, 6);
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("to continue from step 5"));
  }
}

TEST(Manifest, ComesBackAndIsRefusedWhereItsMeaningIsGone) {
  Manifest manifest{make_state(5), {{"model.safetensors", {10, "ab"}}, {"optimizer.safetensors", {20, "cd"}}}};
  EXPECT_EQ(parse_manifest(to_text(manifest)), manifest);
  EXPECT_THAT(to_text(manifest), ::testing::HasSubstr("\"version\":1,"));
  manifest.files.erase("optimizer.safetensors");  // sound in itself
  EXPECT_THROW(parse_manifest(to_text(manifest)), InputError);
  manifest.files["optimizer.safetensors"] = {};
  EXPECT_EQ(parse_manifest(to_text(manifest)), manifest);
  const MixtureRecord mixture = std::exchange(manifest.record.mixture, {});
  EXPECT_EQ(parse_manifest(to_text(manifest)), manifest);
  EXPECT_THAT(to_text(manifest), ::testing::Not(::testing::HasSubstr("mixture")));
  for (const auto& [share, words] : std::map<int64_t, std::string>{{2, "'shares'"}, {0, "'shares'"}, {1, "'used'"}}) {
    manifest.record.mixture = mixture;
    manifest.record.mixture.shares["web"] = share;
    if (share == 1) manifest.record.mixture.used.erase("web");
    EXPECT_THAT(complaint_of([&] { parse_manifest(to_text(manifest)); }), ::testing::HasSubstr(words));
  }
  manifest.record.mixture = mixture;
  auto& model = manifest.record.model = nlohmann::ordered_json::array();
  for (int depth = 0; depth < 1000; ++depth) model = nlohmann::ordered_json::array({std::move(model)});
  EXPECT_THROW(parse_manifest(to_text(manifest)), InputError);
}

bool save(const fs::path& directory, int64_t step, int keep, FileSystem& files) {
  try {
    save_checkpoint(directory, make_state(step), keep, files);
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(Checkpoint, ASaveThatGoesWrongAnywhereLeavesWholeCheckpoints) {
  const testing_support::TemporaryDirectory place;
  const fs::path& directory = place.path();
  FaultyFiles sound;
  const int64_t faults = walk_faults(
      [&] {
        fs::remove_all(directory);
        fs::create_directories(directory);
        for (const int64_t step : {1, 2}) save_checkpoint(directory, make_state(step), 0, sound);
      },
      [&](FileSystem& files) { return save(directory, 3, 2, files); },
      [&](bool succeeded, Fault) {
        const auto steps = list_checkpoints(directory);
        ASSERT_FALSE(steps.empty());
        ASSERT_TRUE(steps.back() == 3 || (steps.back() == 2 && !succeeded));
        for (const int64_t step : steps) {
          const CheckpointState state = load_checkpoint(directory, step);
          ASSERT_TRUE(same(state.weights, make_state(step).weights));
          ASSERT_TRUE(same(state.optimizer, make_state(step).optimizer));
        }
        ASSERT_TRUE(save(directory, 4, 1, sound));
        ASSERT_EQ(std::distance(fs::directory_iterator(directory), fs::directory_iterator()), 1);
      });
  EXPECT_GE(faults, 5 * 15);
}

TEST(Checkpoint, TheSameStepSavedAgainIsThereAtEveryMoment) {
  const testing_support::TemporaryDirectory place;
  const fs::path& directory = place.path();
  FaultyFiles sound;
  walk_faults([&] { save_checkpoint(directory, make_state(5), 0, sound); },
              [&](FileSystem& files) { return save(directory, 5, 0, files); },
              [&](bool, Fault) { ASSERT_TRUE(same(load_checkpoint(directory, 5).weights, make_state(5).weights)); });
}

TEST(Checkpoint, WhatCannotBeReadIsNotEmpty) {
  const testing_support::TemporaryDirectory place;
  const fs::path& directory = place.path();
  const auto complaint = [&](const fs::path& path) {
    try {
      return list_checkpoints(path).empty() ? std::string("none") : std::string("some");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(complaint(directory), "none");
  EXPECT_EQ(complaint(directory / "absent"), "none");
  fs::create_symlink("unmounted", directory / "link");
  EXPECT_THAT(complaint(directory / "link"), ::testing::EndsWith("link: is a link to unmounted, which is not there; "
                                                                 "mount or put back what it leads to"));
  fs::create_symlink("loop", directory / "loop");
  EXPECT_THAT(complaint(directory / "loop"), ::testing::HasSubstr("loop: cannot be looked at"));
  std::ofstream(directory / "file") << "x";
  EXPECT_THAT(complaint(directory / "file"), ::testing::HasSubstr("file: cannot be read: Not a directory"));
  EXPECT_THAT(complaint(directory / "file" / "below"), ::testing::HasSubstr("cannot be looked at"));
  if (::geteuid() == 0) return;  // root may read everything
  fs::create_directory(directory / "closed");
  fs::permissions(directory / "closed", fs::perms::none);
  EXPECT_THAT(complaint(directory / "closed"), ::testing::HasSubstr("closed: cannot be read: Permission denied"));
  fs::permissions(directory / "closed", fs::perms::owner_all);
}

TEST(Checkpoint, RoomIsMadeButTheNewestStays) {
  const testing_support::TemporaryDirectory place;
  const fs::path& directory = place.path();
  EXPECT_EQ(room_to_make(directory / "absent", {2}), 0);
  for (const int64_t step : {1, 2, 3}) save_checkpoint(directory, make_state(step), 0);
  fs::create_directories(directory / ".tmp-step-00000004");
  std::ofstream(directory / ".tmp-step-00000004" / "model.safetensors") << std::string(5000, 'x');
  int64_t one = 0;
  for (const auto& file : fs::directory_iterator(directory / "step-00000001")) {
    one += static_cast<int64_t>(file.file_size());
  }
  const CheckpointState state = make_state(1);
  EXPECT_GE(shard_bytes(state.weights) + shard_bytes(state.optimizer) + (1 << 16), one);
  EXPECT_EQ(room_to_make(directory, {0}), 5000) << "all are kept";
  EXPECT_EQ(room_to_make(directory, {4}), 5000);
  EXPECT_EQ(room_to_make(directory, {INT64_MAX}), 5000);
  EXPECT_EQ(room_to_make(directory, {3}), 5000 + one);
  EXPECT_EQ(room_to_make(directory, {1}), 5000 + 2 * one);
  make_room(directory, {3});
  EXPECT_EQ(list_checkpoints(directory), (std::vector<int64_t>{2, 3}));
  EXPECT_FALSE(fs::exists(directory / ".tmp-step-00000004"));
  make_room(directory, {1});
  EXPECT_EQ(list_checkpoints(directory), (std::vector<int64_t>{3}));
  make_room(directory, {1});
  EXPECT_EQ(list_checkpoints(directory), (std::vector<int64_t>{3})) << "the newest never goes";
  save_checkpoint(directory, make_state(4), INT64_MAX);
  EXPECT_EQ(list_checkpoints(directory), (std::vector<int64_t>{3, 4}));
}

TEST(Checkpoint, SomeStayForEver) {
  const testing_support::TemporaryDirectory place;
  const fs::path& directory = place.path();
  for (const int64_t step : {5, 10, 15, 20, 23, 25, 27}) save_checkpoint(directory, make_state(step), 0);
  EXPECT_GT(room_to_make(directory, {2, 5}), 0) << "23 may go";
  make_room(directory, {2, 5});
  EXPECT_EQ(list_checkpoints(directory), (std::vector<int64_t>{5, 10, 15, 20, 25, 27}));
  remove_obsolete(directory, {1, 10});
  EXPECT_EQ(list_checkpoints(directory), (std::vector<int64_t>{10, 20, 27}));
  make_room(directory, {1, 10});
  EXPECT_EQ(list_checkpoints(directory), (std::vector<int64_t>{10, 20, 27}));
  remove_obsolete(directory, {0, 10});
  EXPECT_EQ(list_checkpoints(directory), (std::vector<int64_t>{10, 20, 27})) << "0 keeps all";
}

TEST(Checkpoint, PartsThatBelongToNothingGo) {
  const testing_support::TemporaryDirectory place;
  const fs::path& directory = place.path();
  for (const int64_t step : {1, 2, 3}) {
    fs::create_directories(directory / ".tmp-part");
    std::ofstream(directory / ".tmp-part" / "file") << "first";
    complete_part(directory, ".tmp-part", step);
  }
  fs::create_directories(directory / ".tmp-part");
  std::ofstream(directory / ".tmp-part" / "file") << "second";
  complete_part(directory, ".tmp-part", 3);
  EXPECT_EQ(read_file(checkpoint_path(directory, 3) / "file"), "second");
  fs::create_directories(directory / ".tmp-left");
  keep_only(directory, {2, 7});
  EXPECT_EQ(list_checkpoints(directory), std::vector<int64_t>{2});
  EXPECT_EQ(std::distance(fs::directory_iterator(directory), fs::directory_iterator()), 1);
}

TEST(Manifest, SaysWhereFilesAre) {
  Manifest manifest{make_state(5), {{"model.safetensors", {10, "ab"}}, {"optimizer.safetensors", {20, "cd"}}}};
  for (const auto& [name, file] : manifest.files) manifest.places[name] = {"host-a", "/runs/\"novel\""};
  EXPECT_EQ(parse_manifest(to_text(manifest)), manifest);
  EXPECT_THAT(to_text(manifest), ::testing::HasSubstr("\"version\":3,"));
  for (const PartsMark& mark : {PartsMark{"ab", "", ""}, PartsMark{"ab", "host-a", "/runs/\"novel\""}}) {
    EXPECT_EQ(parse_parts_mark(to_text(mark)), mark);
  }
  EXPECT_THROW(parse_parts_mark(R"({"host":"host-a","directory":"/runs"})"), InputError);
}

TEST(Checkpoint, OneOfNoUseIsSetAside) {
  const testing_support::TemporaryDirectory place;
  const fs::path& directory = place.path();
  for (const int64_t step : {1, 2}) save_checkpoint(directory, make_state(step), 0);
  EXPECT_EQ(set_aside(directory, 2), directory / "damaged-step-00000002");
  EXPECT_EQ(list_checkpoints(directory), std::vector<int64_t>{1});
  save_checkpoint(directory, make_state(2), 1);
  set_aside(directory, 2);
  EXPECT_TRUE(list_checkpoints(directory).empty());
  EXPECT_TRUE(fs::exists(directory / "damaged-step-00000002" / "manifest.json"));
}

TEST(Checkpoint, WhatACrashLeftIsIgnoredAndCleaned) {
  const testing_support::TemporaryDirectory place;
  const fs::path& directory = place.path();
  save_checkpoint(directory, make_state(1), 0);
  fs::create_directories(directory / ".tmp-step-00000002");
  std::ofstream(directory / ".tmp-step-00000002" / "model.safetensors") << "torn";
  fs::create_directories(directory / "step-7");  // not a name that gyre gives
  EXPECT_EQ(latest_checkpoint(directory), 1);
  save_checkpoint(directory, make_state(3), 0);
  EXPECT_FALSE(fs::exists(directory / ".tmp-step-00000002"));
  EXPECT_EQ(latest_checkpoint(testing_support::TemporaryDirectory().path()), std::nullopt);
}

}  // namespace
}  // namespace gyre
