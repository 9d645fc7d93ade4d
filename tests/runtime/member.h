// Ranks of a run as threads of one process, each with a pipeline of its own, connected as processes are.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fixture.h"
#include "gyre/core/error.h"
#include "gyre/runtime/processes_executor.h"
#include "handed_channels.h"

namespace gyre::testing_support {

// The text of the error that `action` throws.
template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was wrong";
}

// One rank of a run: its connections to the others, and its part of the pipeline.
struct Member {
  Member(const Experiment& e, int rank, int world, const std::string& place)
      : Member(e, rank, world, make_rendezvous({.directory = place, .world = world})) {}
  Member(const Experiment& e, int rank, int world, std::unique_ptr<Rendezvous> rendezvous)
      : ranks(rank, world, "job", std::move(rendezvous)),
        map(make_schedule({e.schedule, e.stages, e.window, e.replicas}).workers, world),
        pipeline(make_pipeline(e, map.workers_of(rank))) {}
  // handover: tensors go through it instead of in frames.
  void meet(const RankFacts& facts, const std::shared_ptr<Handover>& handover = nullptr) {
    std::unique_ptr<DeviceChannels> channels;
    if (handover) {
      channels = std::make_unique<HandedChannels>(handover, std::to_string(ranks.rank() % handover->devices));
    }
    ranks.meet(facts, linked_ranks(pipeline, map), 60, std::move(channels));
  }
  Ranks ranks;
  RankMap map;
  Pipeline pipeline;
};

// The weights and optimizer states of this process.
inline NamedTensors state_of(const Pipeline& pipeline) {
  NamedTensors state;
  for (const auto& [name, tensor] : pipeline.weights()) state[name] = tensor.clone();
  for (const auto& [name, tensor] : pipeline.optimizer_state()) state["optimizer " + name] = tensor.clone();
  return state;
}

// A thread that follows rank 0, and how that ended.
class Follower {
 public:
  Follower(const Experiment& e, int rank, int world, const std::string& place, const BatchSource& batches,
           RankFacts facts = {}, std::shared_ptr<Handover> handover = nullptr, std::stop_token stop = {},
           std::function<void(const Error&)> abandon = {}) {
    thread_ = std::jthread([=, this, &batches] {
      try {
        Member member(e, rank, world, place);
        member.meet(facts, handover);
        const auto answer = [rank](const std::string& question) { return question + ": rank " + std::to_string(rank); };
        end =
            carry_out_commands(member.pipeline, member.ranks, member.map, {&batches, &batches, answer, stop, abandon});
        state = state_of(member.pipeline);
      } catch (const std::exception& caught) {
        error = caught.what();
      }
    });
  }
  void join() { thread_.join(); }
  std::optional<RunEnd> end;
  NamedTensors state;
  std::string error;

 private:
  std::jthread thread_;
};

inline std::vector<std::unique_ptr<Follower>> followers(const Experiment& e, int world, const std::string& place,
                                                        const BatchSource& batches,
                                                        const std::shared_ptr<Handover>& handover = nullptr) {
  std::vector<std::unique_ptr<Follower>> all;
  for (int rank = 1; rank < world; ++rank) {
    all.push_back(std::make_unique<Follower>(e, rank, world, place, batches, RankFacts{}, handover));
  }
  return all;
}

// What a rendezvous does, done by another: for one that differs in little.
class SameRendezvous : public Rendezvous {
 public:
  explicit SameRendezvous(std::unique_ptr<Rendezvous> open) : open_(std::move(open)) {}
  void leave(const std::string& key, const std::string& note) override { open_->leave(key, note); }
  bool leave_first(const std::string& key, const std::string& note) override { return open_->leave_first(key, note); }
  bool has(const std::string& key) override { return open_->has(key); }
  void check_stop() override { open_->check_stop(); }
  std::string find(const std::string& key, std::chrono::seconds within) override { return open_->find(key, within); }
  std::unique_ptr<Wire> connect(const std::string& name, bool first, const std::string& with) override {
    return open_->connect(name, first, with);
  }
  const std::string& address() const override { return open_->address(); }
  const std::string& listens_at() const override { return open_->listens_at(); }

 private:
  std::unique_ptr<Rendezvous> open_;
};

}  // namespace gyre::testing_support
