// Checkpoints of several processes: one index over all files, in one directory or in those of several hosts.
#include "gyre/checkpoint/format/shards.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <set>

#include "checkpoint/fixture.h"
#include "gyre/core/host_name.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using namespace testing_support;
namespace fs = std::filesystem;

// The tensors of make_state(step) over `count` files of the model and one less of the optimizer.
void save_in_shards(const fs::path& directory, int64_t step, int count, FileSystem& files = system_files()) {
  CheckpointState state = make_state(step);
  for (int i = 0; i < 3; ++i) {
    state.weights[fmt::format("c{}", i)] = at::randn({4, 3});
    state.optimizer[fmt::format("c{}/first", i)] = at::randn({4, 3});
  }
  CheckpointUnderConstruction checkpoint(directory, state.step, files, "-attempt");
  std::vector<WrittenShard> all;
  for (int shard = 0; shard < count; ++shard) {
    const auto part_of = [&](const NamedTensors& tensors, int shards) {
      NamedTensors some;
      int number = 0;
      for (const auto& [name, tensor] : tensors) {
        if (number++ % shards == shard) some[name] = tensor;
      }
      return some;
    };
    ShardNumbers numbers{ShardNumber{shard + 1, count}, std::nullopt};
    if (shard + 1 < count) numbers.optimizer = ShardNumber{shard + 1, count - 1};
    const auto written = write_shards(checkpoint.directory(), part_of(state.weights, count),
                                      part_of(state.optimizer, count - 1), numbers, files);
    all.insert(all.end(), written.begin(), written.end());
  }
  checkpoint.commit(state, all);
}

TEST(Shards, AreOneCheckpointWithAnIndex) {
  const testing_support::TemporaryDirectory place;
  const fs::path& directory = place.path();
  save_in_shards(directory, 7, 3);
  const fs::path made = directory / "step-00000007";
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(made)) names.insert(entry.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"manifest.json", "model-00001-of-00003.safetensors",
                                          "model-00002-of-00003.safetensors", "model-00003-of-00003.safetensors",
                                          "model.safetensors.index.json", "optimizer-00001-of-00002.safetensors",
                                          "optimizer-00002-of-00002.safetensors", "optimizer.safetensors.index.json"}));
  EXPECT_EQ(std::distance(fs::directory_iterator(directory), fs::directory_iterator()), 1);
  const auto index = nlohmann::json::parse(read_file(made / "model.safetensors.index.json"));
  EXPECT_EQ(index["metadata"]["total_size"], (3 * 5 + 2 + 3 * 12) * 4);
  EXPECT_EQ(index["weight_map"]["a.weight"], "model-00001-of-00003.safetensors");
  EXPECT_EQ(index["weight_map"].size(), 5u);

  const CheckpointState state = load_checkpoint(directory, 7);
  CheckpointState expected = make_state(7);
  for (int i = 0; i < 3; ++i) {
    expected.weights[fmt::format("c{}", i)] = at::randn({4, 3});
    expected.optimizer[fmt::format("c{}/first", i)] = at::randn({4, 3});
  }
  EXPECT_TRUE(same(state.weights, expected.weights));
  EXPECT_TRUE(same(state.optimizer, expected.optimizer));
  EXPECT_EQ(CheckpointReader(directory, 7).parameter_count(), 3 * 5 + 2 + 3 * 12);
}

TEST(Shards, OnlyThoseWithWhatIsWantedAreRead) {
  const testing_support::TemporaryDirectory place;
  const fs::path& directory = place.path();
  save_in_shards(directory, 7, 3);
  // b and c2 are in the second, which is all that is left.
  for (const char* file : {"model-00001-of-00003", "model-00003-of-00003", "optimizer-00001-of-00002"}) {
    fs::remove(directory / "step-00000007" / fmt::format("{}.safetensors", file));
  }
  const CheckpointReader reader(directory, 7);
  const NamedTensors read = reader.read(Part::Model, [](const std::string& name) { return name == "b"; });
  ASSERT_EQ(read.size(), 1u);
  EXPECT_TRUE(read.at("b").equal(make_state(7).weights.at("b")));
  EXPECT_THAT(
      complaint_of([&] { reader.read(Part::Model); }),
      ::testing::HasSubstr("model-00001-of-00003.safetensors: is missing; put it back, there is no checkpoint"));
}

TEST(Shards, EveryFaultOfAFileIsToldByItsName) {
  const testing_support::TemporaryDirectory place;
  const fs::path& directory = place.path();
  save_in_shards(directory, 6, 2);
  save_in_shards(directory, 7, 2);
  const fs::path made = directory / "step-00000007", before = directory / "step-00000006";
  for (const std::string name :
       {"manifest.json", "model-00002-of-00002.safetensors", "model.safetensors.index.json", "optimizer.safetensors"}) {
    const std::string content = read_file(made / name);
    const auto complaint = [&] { return complaint_of([&] { CheckpointReader(directory, 7).check(); }); };
    const auto put = [&](const std::string& text) { std::ofstream(made / name, std::ios::binary) << text; };
    std::string flipped = content;
    flipped[flipped.size() / 2] ^= 1;
    put(flipped);
    EXPECT_THAT(complaint(), ::testing::AllOf(::testing::HasSubstr((made / name).string() + ": its checksum differs"),
                                              ::testing::HasSubstr("to continue from step 6")));
    put(content.substr(0, content.size() / 2));
    EXPECT_THAT(complaint(), ::testing::HasSubstr((made / name).string() + ": "));
    if (name.find("index") == std::string::npos) {  // both have the same
      put(read_file(before / name));
      EXPECT_THAT(complaint(), ::testing::HasSubstr((made / name).string() + ": "));
    }
    fs::remove(made / name);
    EXPECT_THAT(complaint(), ::testing::HasSubstr((made / name).string() + ": is missing; put it back, or remove"));
    put(content);
    EXPECT_EQ(complaint(), "nothing was wrong");
  }
}

// A checkpoint of two files whose second is said to lie in `there` on a host of that name.
void save_with_a_part_elsewhere(const fs::path& here, const std::string& host, const fs::path& there) {
  const CheckpointState state = make_state(3);
  CheckpointUnderConstruction checkpoint(here, 3);
  fs::create_directories(there / ".tmp-part");
  auto shards =
      write_shards(checkpoint.directory(), state.weights, state.optimizer, {ShardNumber{1, 2}, ShardNumber{}});
  auto more = write_shards(there / ".tmp-part", {{"c", at::ones({2})}}, {}, {ShardNumber{2, 2}, std::nullopt});
  more.back().place = {host, checkpoint_path(there, 3).string()};
  shards.push_back(more.back());
  complete_part(there, ".tmp-part", 3);
  checkpoint.commit(state, shards, host_name());
}

TEST(Shards, OnAnotherHostAreNamedWithTheirPlace) {
  const testing_support::TemporaryDirectory place;
  const fs::path here = place.path() / "here", there = place.path() / "there";
  save_with_a_part_elsewhere(here, "host-b", there);
  const std::string file = "model-00002-of-00002.safetensors";
  const CheckpointReader reader(here, 3);
  const auto complaint = [&] { return complaint_of([&] { reader.read(Part::Model); }); };
  EXPECT_EQ(complaint(), fmt::format("{}: is not here; host-b has it in {}: copy it into {} here, there is no "
                                     "checkpoint before it",
                                     (checkpoint_path(here, 3) / file).string(), checkpoint_path(there, 3).string(),
                                     checkpoint_path(here, 3).string()));
  EXPECT_EQ(complaint_of([&] { reader.check_presence({Part::Model, Part::Optimizer}); }), complaint());
  EXPECT_EQ(complaint_of([&] { reader.check(); }), "nothing was wrong") << "of what is here";
  EXPECT_EQ(reader.parameter_count(), 3 * 5 + 2 + 2);
  EXPECT_EQ(reader.read(Part::Model, [](const std::string& name) { return name == "b"; }).size(), 1u);

  // A process there reads with the description that it is sent.
  const CheckpointReader told(there, 3, reader.describe());
  EXPECT_EQ(told.read(Part::Model, [](const std::string& name) { return name == "c"; }).size(), 1u);
  EXPECT_EQ(told.record(), reader.record());

  const std::string content = read_file(checkpoint_path(there, 3) / file);
  std::ofstream(checkpoint_path(here, 3) / file, std::ios::binary) << content.substr(0, 50);
  EXPECT_THAT(complaint(), ::testing::HasSubstr(": its size differs from what was written on host-b in "));
  std::ofstream(checkpoint_path(here, 3) / file, std::ios::binary) << content;
  EXPECT_EQ(complaint(), "nothing was wrong");
  EXPECT_EQ(load_checkpoint(here, 3).weights.size(), 3u);
}

TEST(Shards, ThatAreNotWholeAreNoCheckpoint) {
  const testing_support::TemporaryDirectory place;
  const fs::path& directory = place.path();
  const CheckpointState state = make_state(3);
  const auto commit = [&](const std::function<void(const fs::path&, std::vector<WrittenShard>&)>& meddle) {
    return complaint_of([&] {
      CheckpointUnderConstruction checkpoint(directory, 3);
      auto shards = write_shards(checkpoint.directory(), state.weights, state.optimizer, {ShardNumber{1, 2}, {}});
      const auto more =
          write_shards(checkpoint.directory(), {{"c", at::ones({2})}}, {}, {ShardNumber{2, 2}, std::nullopt});
      shards.insert(shards.end(), more.begin(), more.end());
      meddle(checkpoint.directory(), shards);
      checkpoint.commit(state, shards);
    });
  };
  EXPECT_THAT(commit([](const fs::path& made, auto&) { fs::remove(made / "model-00002-of-00002.safetensors"); }),
              ::testing::HasSubstr("model-00002-of-00002.safetensors: is not as it was written"));
  EXPECT_THAT(
      commit([](const fs::path& made, auto&) { fs::resize_file(made / "model-00001-of-00002.safetensors", 9); }),
      ::testing::HasSubstr("model-00001-of-00002.safetensors: is not as it was written"));
  EXPECT_THAT(
      commit([](const fs::path&, auto& shards) { shards.back().tensors = {"b"}; }),
      ::testing::HasSubstr("'b' is in model-00001-of-00002.safetensors and in model-00002-of-00002.safetensors"));
  EXPECT_TRUE(fs::is_empty(directory));
  EXPECT_EQ(commit([](const fs::path&, auto&) {}), "nothing was wrong");
}

TEST(Shards, AManifestWithoutAllOfThemIsRefused) {
  Manifest manifest{make_state(5), {}};
  for (const char* name : {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                           "model.safetensors.index.json", "optimizer.safetensors"}) {
    manifest.files[name] = {10, "ab"};
  }
  EXPECT_EQ(parse_manifest(to_text(manifest)), manifest);
  EXPECT_THAT(to_text(manifest), ::testing::HasSubstr("\"version\":2,"));
  for (const auto& [name, file] : manifest.files) {
    Manifest lacks = manifest;
    lacks.files.erase(name);
    EXPECT_THAT(complaint_of([&] { parse_manifest(to_text(lacks)); }), ::testing::HasSubstr("is missing")) << name;
  }
  manifest.files["notes.txt"] = {10, "ab"};
  EXPECT_THAT(complaint_of([&] { parse_manifest(to_text(manifest)); }), ::testing::HasSubstr("notes.txt"));
}

}  // namespace
}  // namespace gyre
