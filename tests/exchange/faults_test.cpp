// Import and export whose n-th call to the file system fails, or which are stopped there: what they make is either
// complete or absent.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <stop_token>
#include <system_error>

#include "exchange/fixture.h"
#include "gyre/checkpoint/checkpoint.h"
#include "gyre/checkpoint/safetensors.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/stopped.h"
#include "gyre/exchange/export_model.h"
#include "gyre/exchange/import_model.h"
#include "gyre/train/run_directory.h"
#include "support/faulty_files.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

class ExchangeFaults : public testing::Test {
 protected:
  // A model of transformers.
  void SetUp() override {
    testing_support::write_small_llama(place_ / "model");
    write_file_atomic(place_ / "model" / "vocab.json", "{}");
  }

  // `make` builds `out` through files that fail; `check` looks at one that is there.
  void walk(const fs::path& out, const std::function<void(FileSystem&)>& make, const std::function<void()>& check) {
    FaultyFiles sound;
    make(sound);
    check();
    ASSERT_GT(sound.calls(), 5);
    for (const Fault fault : kAllFaults) {
      for (int64_t at = 0; at < sound.calls(); ++at) {
        fs::remove_all(out);
        bool failed = false;
        {
          FaultyFiles files(at, fault);
          try {
            make(files);
          } catch (const Error&) {
            failed = true;
          }
        }
        if (fs::exists(out)) {
          check();
        } else {
          EXPECT_TRUE(failed) << to_string(fault) << " at " << at;
        }
        // What was left does not prevent the next attempt.
        fs::remove_all(out);
        make(system_files());
        check();
        if (HasFailure()) FAIL() << to_string(fault) << " at call " << at;
      }
    }
  }

  // `make` is asked to stop at its n-th call to the file system.
  void stop(const fs::path& out, const std::function<void(FileSystem&, const std::stop_token&)>& make,
            const std::function<void()>& check) {
    const auto names = [&] {
      std::error_code ignored;
      return entries_of(out.parent_path(), ignored);
    };
    const auto without = names();
    FaultyFiles sound;
    make(sound, {});
    int64_t stopped = 0;
    for (int64_t at = 0; at < sound.calls(); ++at) {
      fs::remove_all(out);
      FaultyFiles files;
      std::stop_source stop;
      files.tell_at(at, [&] { stop.request_stop(); });
      try {
        make(files, stop.get_token());
        check();  // it was all but ready
      } catch (const Stopped&) {
        ++stopped;
        EXPECT_EQ(names(), without) << "call " << at;
      }
    }
    EXPECT_GT(stopped, 5) << "also while tensors were written";
    EXPECT_LT(stopped, sound.calls());
  }

  void import(FileSystem& files, const std::stop_token& stop = {}) {
    import_model({.from = place_ / "model", .out = place_ / "run", .context = 0, .stop = stop, .files = &files});
  }
  void check_import() {
    const RunDirectory run(place_ / "run");
    EXPECT_EQ(run.load_config().model.width, 8);
    EXPECT_EQ(load_checkpoint(run.checkpoints(), 0).weights.size(), 9U);
    EXPECT_TRUE(fs::exists(run.hugging_face() / "vocab.json"));
    EXPECT_TRUE(fs::exists(run.root() / "train.toml"));
  }
  // Of the imported run.
  void export_again(FileSystem& files, const std::stop_token& stop = {}) {
    ExportOptions options;
    options.run = place_ / "run";
    options.out = place_ / "again";
    options.shard_bytes = 600;
    options.stop = stop;
    options.files = &files;
    export_model(options);
  }
  void check_export() {
    const fs::path out = place_ / "again";
    const NamedTensors theirs = read_safetensors(place_ / "model" / "model.safetensors");
    size_t found = 0;
    for (const auto& entry : fs::directory_iterator(out)) {
      if (entry.path().extension() != ".safetensors") continue;
      for (const auto& [name, tensor] : read_safetensors(entry.path())) {
        EXPECT_TRUE(theirs.at(name).equal(tensor)) << name;
        ++found;
      }
    }
    EXPECT_EQ(found, theirs.size());
    EXPECT_TRUE(fs::exists(out / "model.safetensors.index.json"));
    EXPECT_TRUE(fs::exists(out / "config.json"));
    EXPECT_EQ(read_file(out / "vocab.json"), "{}");
  }

  const testing_support::TemporaryDirectory place_;
};

TEST_F(ExchangeFaults, AnImportIsWholeOrNotThere) {
  walk(
      place_ / "run", [&](FileSystem& files) { import(files); }, [&] { check_import(); });
}

TEST_F(ExchangeFaults, AnExportIsWholeOrNotThere) {
  import(system_files());
  walk(
      place_ / "again", [&](FileSystem& files) { export_again(files); }, [&] { check_export(); });
}

TEST_F(ExchangeFaults, AModelOfLlmcIsWholeOrNotThere) {
  ModelSettings settings = testing_support::small_llama();
  settings.kind = "gpt";
  settings.mlp_width = 4 * settings.width;
  settings.bias = settings.tie = true;
  settings.activation = "gelu-tanh";
  fs::remove_all(place_ / "model");
  testing_support::write_small_model(place_ / "model", settings);
  import(system_files());
  const fs::path exported = place_ / "llm.c", imported = place_ / "again";
  const auto write = [&](FileSystem& files) {
    export_model(
        {.run = place_ / "run", .out = exported, .format = ExportFormat::LlmC, .dtype = "bf16", .files = &files});
  };
  const auto read = [&](FileSystem& files) {
    import_model({.from = exported / kLlmcFile, .out = imported, .files = &files});
  };
  write(system_files());
  const std::string sound = read_file(exported / kLlmcFile);
  fs::remove_all(exported);
  walk(exported, write, [&] { EXPECT_TRUE(read_file(exported / kLlmcFile) == sound); });
  walk(imported, read, [&] {
    EXPECT_EQ(load_checkpoint(RunDirectory(imported).checkpoints(), 0).weights.size(), 16U);
    EXPECT_TRUE(fs::exists(imported / "train.toml"));
  });
}

TEST_F(ExchangeFaults, AStoppedImportLeavesNothing) {
  stop(
      place_ / "run", [&](FileSystem& files, const std::stop_token& stop) { import(files, stop); },
      [&] { check_import(); });
}

TEST_F(ExchangeFaults, AStoppedExportLeavesNothing) {
  import(system_files());
  stop(
      place_ / "again", [&](FileSystem& files, const std::stop_token& stop) { export_again(files, stop); },
      [&] { check_export(); });
}

}  // namespace
}  // namespace gyre
