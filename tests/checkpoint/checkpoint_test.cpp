// Checkpoints: exact round trips, every flipped byte noticed, writes that fail at any point leave nothing half-written.
#include "gyre/checkpoint/checkpoint.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <set>

#include "gyre/checkpoint/format/parts_mark.h"
#include "gyre/checkpoint/safetensors.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/host_name.h"
#include "support/faulty_files.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

CheckpointState make_state(int64_t step) {
  at::manual_seed(static_cast<uint64_t>(step));
  CheckpointState state;
  state.step = step;
  state.microbatches = step * 4;
  state.tokens = step * 400;
  state.seed = 7;
  state.drains = {3, 9};
  state.model = {{"kind", "gpt"}, {"width", 4}};
  state.delay = {{{0, 3}, {2, 5}}, {{0, 8}}};
  state.skipped = 2;
  state.weights = {{"a.weight", at::randn({3, 5})}, {"b", at::randn({2})}};
  state.optimizer = {{"a.weight/first", at::randn({3, 5})}, {"empty", at::empty({0, 4})}};
  return state;
}

// As a run of one process saves itself.
void save_checkpoint(const fs::path& directory, const CheckpointState& state, int64_t keep,
                     FileSystem& files = system_files()) {
  {
    CheckpointUnderConstruction checkpoint(directory, state.step, files);
    checkpoint.commit(state, write_shards(checkpoint.directory(), state.weights, state.optimizer, {}, files));
  }
  remove_obsolete(directory, {keep}, files);
}

bool same(const NamedTensors& a, const NamedTensors& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, tensor] : a) {
    if (b.count(name) == 0 || !tensor.equal(b.at(name))) return false;
  }
  return true;
}

TEST(Safetensors, RoundTripsEveryTypeAndIsReproducible) {
  const testing_support::TemporaryDirectory place;
  const fs::path& directory = place.path();
  NamedTensors tensors;
  for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble, at::kLong, at::kInt, at::kByte}) {
    tensors[at::toString(type)] = (at::rand({3, 4}) * 100).to(type);
  }
  tensors["scalar"] = at::scalar_tensor(1.5);
  tensors["transposed"] = at::randn({3, 4}).t();
  const WrittenFile first = write_safetensors(directory / "one", tensors);
  EXPECT_EQ(first.checksum, write_safetensors(directory / "two", tensors).checksum);
  EXPECT_EQ(first.bytes, fs::file_size(directory / "one"));
  EXPECT_EQ(first.checksum, file_checksum(directory / "one"));
  const NamedTensors back = read_safetensors(directory / "one");
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(back.at(name).scalar_type(), tensor.scalar_type());
    EXPECT_TRUE(back.at(name).equal(tensor)) << name;
  }
}

std::string file_with_header(const std::string& header, size_t data) {
  const uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + std::string(data, '\1');
}

TEST(Safetensors, RefusesWhatTheFormatForbids) {
  const testing_support::TemporaryDirectory place;
  const fs::path& directory = place.path();
  const auto complaint = [&](const std::string& content) {
    std::ofstream(directory / "file", std::ios::binary) << content;
    try {
      read_safetensors(directory / "file");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  EXPECT_EQ(complaint(file_with_header(good, 8)), "accepted");
  EXPECT_THAT(complaint("abc"), ::testing::HasSubstr("shorter"));
  EXPECT_THAT(complaint(file_with_header(good, 7)), ::testing::HasSubstr("'a'"));
  EXPECT_THAT(complaint(file_with_header(good, 9)), ::testing::HasSubstr("too many"));
  EXPECT_THAT(complaint(file_with_header(" " + good, 8)), ::testing::HasSubstr("begin with"));
  EXPECT_THAT(complaint(file_with_header("{nonsense", 8)), ::testing::HasSubstr("JSON"));
  EXPECT_THAT(complaint(file_with_header(R"({"a":{"dtype":"F99","shape":[2],"data_offsets":[0,8]}})", 8)),
              ::testing::HasSubstr("F99"));
  EXPECT_THAT(complaint(file_with_header(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8)),
              ::testing::HasSubstr("'a'"));
  EXPECT_THAT(complaint(file_with_header(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8)),
              ::testing::HasSubstr("'a'"));
  EXPECT_THAT(complaint(file_with_header(R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8)),
              ::testing::HasSubstr("lacks"));
  // Nothing is in it, but its strides are beyond any number.
  EXPECT_THAT(
      complaint(file_with_header(R"({"a":{"dtype":"U8","shape":[0,4611686018427387904,4],"data_offsets":[0,0]}})", 0)),
      ::testing::HasSubstr("'a'"));
  EXPECT_THAT(complaint(file_with_header(R"({"a":[)" + std::string(1'000'000, '['), 8)),
              ::testing::HasSubstr("'a' is not what the format allows"));
  EXPECT_THAT(
      complaint(file_with_header(
          R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
          8)),
      ::testing::HasSubstr("twice"));
  EXPECT_THAT(
      complaint(file_with_header(
          R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
          8)),
      ::testing::HasSubstr("overlap"));
  EXPECT_THAT(
      complaint(file_with_header(
          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
          12)),
      ::testing::HasSubstr("hole"));
}

// Reads in a child that may take `room` bytes more than it has; what came of it.
std::string read_with_room(const fs::path& file, rlim_t room) {
  const pid_t child = ::fork();
  if (child == 0) {
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + room;
    const rlimit limits{most, most};
    ::setrlimit(RLIMIT_AS, &limits);
    try {
      read_safetensors(file);
      ::_exit(0);
    } catch (const InputError&) {
      ::_exit(1);
    } catch (...) {
      ::_exit(2);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) return "ran out of memory";
  return WEXITSTATUS(status) == 0 ? "read" : "refused";
}

// Each of its tensors is said to be the whole file, or more than there is.
TEST(Safetensors, AForgedHeaderAllocatesNoMoreThanTheFile) {
  const testing_support::TemporaryDirectory place;
  const fs::path& directory = place.path();
  const size_t data = 4 << 20;
  const auto tensor = [](int number, size_t bytes, size_t end) {
    return fmt::format(R"("t{}":{{"dtype":"U8","shape":[{}],"data_offsets":[0,{}]}})", number, bytes, end);
  };
  std::string overlapping = tensor(0, data, data);
  for (int i = 1; i < 100; ++i) overlapping += fmt::format(",{}", tensor(i, data, data));
  const auto write = [&](const char* name, const std::string& tensors) {
    std::ofstream(directory / name, std::ios::binary) << file_with_header(fmt::format("{{{}}}", tensors), data);
  };
  write("sound", tensor(0, data, data));
  write("overlapping", overlapping);
  write("large", tensor(0, size_t{1} << 50, size_t{1} << 50));
  const rlim_t room = 4 * data;  // the map, the tensor, and what else is needed
  EXPECT_EQ(read_with_room(directory / "sound", room), "read");
  EXPECT_EQ(read_with_room(directory / "overlapping", room), "refused");
  EXPECT_EQ(read_with_room(directory / "large", room), "refused");
}

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
  if (::geteuid() == 0) return;  // nothing is closed to root
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

// The tensors of make_state(step) over `count` files of the model and one less of the optimizer.
void save_in_shards(const fs::path& directory, int64_t step, int count, FileSystem& files = system_files()) {
  CheckpointState state = make_state(step);
  for (int i = 0; i < 3; ++i) {
    state.weights["c" + std::to_string(i)] = at::randn({4, 3});
    state.optimizer["c" + std::to_string(i) + "/first"] = at::randn({4, 3});
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

std::string complaint_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was wrong";
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
    expected.weights["c" + std::to_string(i)] = at::randn({4, 3});
    expected.optimizer["c" + std::to_string(i) + "/first"] = at::randn({4, 3});
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
    fs::remove(directory / "step-00000007" / (std::string(file) + ".safetensors"));
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

  // Whoever is there reads by what he is told.
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
