// Small runs of train() in a directory that goes away: what the tests of runs share.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "gyre/checkpoint/checkpoint.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/random.h"
#include "gyre/data/prepare.h"
#include "gyre/train/trainer.h"
#include "support/temporary_directory.h"

namespace gyre::testing_support {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class Runs : public ::testing::Test {
 protected:
  // The text and its tokens are the same for all tests of a process.
  static void SetUpTestSuite() {
    root_ = std::make_unique<TemporaryDirectory>();
    std::ofstream text(root() / "text");
    for (int i = 0; i < 300; ++i) text << "verse " << i << ": and the waters of " << i * 7919 % 1000 << "\n";
    text.close();
    PrepareOptions options;
    options.texts = {(root() / "text").string()};
    options.out = root() / "tokens";
    prepare(options);
    write_config("run.toml", 12);
  }
  static void TearDownTestSuite() { root_.reset(); }

  inline static std::unique_ptr<TemporaryDirectory> root_;
  static const fs::path& root() { return root_->path(); }
  static fs::path path(const std::string& name) { return root() / name; }

  static void write_config(const std::string& name, int64_t updates) {
    std::ofstream(root() / name)
        << "[model]\nlayers = 2\nwidth = 8\nheads = 1\ncontext = 8\ndropout = 0.1\n"
        << "[data]\ntokens = \"" << (root() / "tokens").string() << "\"\n"
        << "[pipeline]\nstages = 3\nmicrobatch = 2\naccumulate = 2\nexecutor = \"replay\"\n"
        << "[optimizer]\nkind = \"adamw\"\nlr = 3e-3\n"
        << "[run]\nprecision = \"fp32\"\ncheckpoint_background = false\ncheckpoint_every = 4\ncheckpoint_minutes = 0\n"
        << "live_seconds = 0\n"  // it is written when the clock says so: calls could not be counted
        << "eval_every = 6\neval_batches = 2\nupdates = " << updates << "\n";
  }

  // mixture.toml: the same run on sources "a", "b" and "c", in which hardly two sequences are alike.
  static void write_mixture() {
    write_config("mixture.toml", 12);
    std::string config = read_file(path("mixture.toml"));
    const std::string tokens = "tokens = \"" + path("tokens").string() + "\"\n";
    config.replace(config.find(tokens), tokens.size(), "order = \"epochs\"\n");
    RandomStream stream(1, StreamPurpose::Test, 0);
    for (const std::string name : {"a", "b", "c"}) {
      const fs::path text = path("text-" + name);
      std::ofstream file(text);
      for (int i = 0; i < 6000; ++i) file << static_cast<char>('a' + stream.below(26));
      file.close();
      PrepareOptions options;
      options.texts = {text.string()};
      options.out = path("tokens-" + name);
      options.overwrite = true;
      prepare(options);
      config += "[[data.source]]\nname = \"" + name + "\"\ntokens = \"" + options.out.string() + "\"\n";
    }
    std::ofstream(path("mixture.toml")) << config;
  }

  struct Session {
    std::vector<std::string> set = {};
    std::string config = "run.toml";  // of a run that begins
    bool resume = false;
    FileSystem* files = &system_files();
    std::stop_token stop = {};
    std::function<bool()> take_save_request = {};
    bool begun = false;
    std::function<void()> on_begun = {};
  };
  // What it says while running is in messages().
  TrainResult run(const std::string& name, const Session& session) {
    const TrainOptions options = options_of(name, session);
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> log(std::fopen(path("log").c_str(), "w"), &std::fclose);
    Progress progress(log.get(), false);
    return train(options, progress);
  }
  TrainResult run(const std::string& name) { return run(name, {}); }
  // What gyre train --check says of the session: its messages, or what it complains of.
  std::string check_of(const std::string& name, const Session& session) {
    const TrainOptions options = options_of(name, session);
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> log(std::fopen(path("log").c_str(), "w"), &std::fclose);
    Progress progress(log.get(), false);
    try {
      check_run(options, progress);
    } catch (const InputError& error) {
      return error.what();
    }
    return messages();
  }
  static TrainOptions options_of(const std::string& name, const Session& session) {
    const bool own = session.resume && fs::exists(path(name) / "config.toml");
    return {.config = own ? fs::path() : path(session.config),
            .overrides = session.set,
            .out = path(name),
            .resume = session.resume,
            .begun = session.begun,
            .on_begun = session.on_begun,
            .trace = {},
            .stop = session.stop,
            .take_save_request = session.take_save_request,
            .abandon = {},
            .files = *session.files};
  }
  TrainResult resume(const std::string& name, std::vector<std::string> set = {}) {
    return run(name, {.set = std::move(set), .resume = true});
  }
  std::string messages() const { return read_file(path("log")); }

  // What a session complains of, or "ran".
  std::string complaint(const std::string& name, const Session& session) {
    try {
      run(name, session);
    } catch (const Error& error) {
      return error.what();
    }
    return "ran";
  }

  std::vector<Json> lines(const std::string& name) const {
    std::vector<Json> all;
    std::ifstream file(path(name) / "metrics.jsonl");
    for (std::string line; std::getline(file, line);) all.push_back(Json::parse(line));
    return all;
  }
  std::vector<Json> lines(const std::string& name, const std::string& event) const {
    std::vector<Json> some;
    for (const Json& line : lines(name)) {
      if (line["event"] == event) some.push_back(line);
    }
    return some;
  }
  // What must not depend on how often a run was stopped: steps, evaluations and delays, without times.
  std::string record(const std::string& name) const {
    std::string text;
    for (const std::string event : {"step", "eval", "delay"}) {
      for (Json line : lines(name, event)) {
        line.erase("tokens_per_second");
        line.erase("seconds");
        text += line.dump() + "\n";
      }
    }
    return text;
  }
  CheckpointState checkpoint(const std::string& name) const {
    return load_checkpoint(path(name) / "checkpoints", *latest_checkpoint(path(name) / "checkpoints"));
  }
  // Weights and optimizer, bit by bit.
  std::string tensors(const std::string& name) const {
    char step[32];
    std::snprintf(step, sizeof step, "step-%08d", static_cast<int>(*latest_checkpoint(path(name) / "checkpoints")));
    const fs::path directory = path(name) / "checkpoints" / step;
    return file_checksum(directory / "model.safetensors") + file_checksum(directory / "optimizer.safetensors");
  }
  // Every file of a run with its content and when it was changed.
  std::map<std::string, std::pair<std::string, fs::file_time_type>> files(const std::string& name) const {
    std::map<std::string, std::pair<std::string, fs::file_time_type>> all;
    for (const auto& entry : fs::recursive_directory_iterator(path(name))) {
      const std::string content = entry.is_regular_file() ? read_file(entry.path()) : "";
      all[entry.path().string()] = {content, entry.last_write_time()};
    }
    return all;
  }
};

}  // namespace gyre::testing_support
