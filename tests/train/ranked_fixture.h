// Runs of several processes, which are threads here, each with its options, its disk and, if asked for, a run directory
// of its own.
#pragma once

#include <fmt/format.h>

#include <string>
#include <thread>
#include <vector>

#include "gyre/runtime/ranks/ranks.h"
#include "train/fixture.h"

namespace gyre::testing_support {

class RankedRuns : public Runs {
 protected:
  // How a process ended: 0 and nothing, or what it complained of.
  struct End {
    int code = 0;
    std::string error;
  };
  struct Place {
    FileSystem* files = &system_files();
    fs::path out = {};  // where it is not the run's
  };

  // [rank]. What rank 0 says is in messages().
  std::vector<End> run_ranks(const std::string& name, Session session, std::vector<Place> places) {
    const TemporaryDirectory store;
    const int world = static_cast<int>(places.size());
    session.set.emplace_back("pipeline.executor=threads");
    std::vector<End> ends(places.size());
    {
      std::vector<std::jthread> threads;
      for (int rank = world - 1; rank >= 0; --rank) {
        threads.emplace_back([&, rank] {
          const Place& place = places[static_cast<size_t>(rank)];
          End& end = ends[static_cast<size_t>(rank)];
          TrainOptions options = options_of(name, session);
          const std::string log = rank == 0 ? path("log").string() : "/dev/null";
          const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(log.c_str(), "w"), &std::fclose);
          Progress progress(file.get(), false);
          try {
            Ranks ranks(rank, world, "job", make_rendezvous({.directory = store.path().string(), .world = world}));
            const fs::path out = place.out.empty() ? options.out : place.out;
            const bool has_config = session.resume && fs::exists(out / "config.toml");
            TrainOptions own{.config = has_config ? fs::path() : path(session.config),
                             .overrides = options.overrides,
                             .out = out,
                             .resume = options.resume,
                             .trace = {},
                             .stop = options.stop,
                             .abandon = {},
                             .files = *place.files,
                             .ranks = &ranks};
            train(own, progress);
          } catch (const Error& error) {
            end = {error.exit_code(), error.what()};
          }
        });
      }
    }
    return ends;
  }
  std::vector<End> run_ranks(const std::string& name, Session session, size_t world) {
    return run_ranks(name, std::move(session), std::vector<Place>(world));
  }
  static void expect_sound(const std::vector<End>& ends) {
    for (const End& end : ends) EXPECT_EQ(end.code, 0) << end.error;
  }

  // Weights and optimizers' states of the newest checkpoint, bit by bit, whatever files they are in.
  std::string contents(const std::string& name) const {
    const CheckpointState state = checkpoint(name);
    Checksum checksum;
    for (const NamedTensors* tensors : {&state.weights, &state.optimizer}) {
      for (const auto& [name, tensor] : *tensors) {
        checksum.update(name.data(), name.size());
        checksum.update(tensor.data_ptr(), tensor.nbytes());
      }
    }
    return checksum.hex();
  }
  static fs::path saved(const std::string& name, const std::string& step) {
    return path(name) / "checkpoints" / fmt::format("step-000000{}", step);
  }
  static void flip(const fs::path& file) {
    std::string content = read_file(file);
    content[content.size() / 2] ^= 1;
    std::ofstream(file, std::ios::binary) << content;
  }
};

}  // namespace gyre::testing_support
