// What the tests of checkpoints share: a state, and a run of one process that saves it.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <functional>
#include <string>

#include "gyre/checkpoint/checkpoint.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"

namespace gyre::testing_support {

inline CheckpointState make_state(int64_t step) {
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
  state.mixture = {40, {{"books", 65535}, {"web", 1}}, {{"books", 30}, {"notes", 4}, {"web", 6}}};
  state.weights = {{"a.weight", at::randn({3, 5})}, {"b", at::randn({2})}};
  state.optimizer = {{"a.weight/first", at::randn({3, 5})}, {"empty", at::empty({0, 4})}};
  return state;
}

// As a run of one process saves itself.
inline void save_checkpoint(const std::filesystem::path& directory, const CheckpointState& state, int64_t keep,
                            FileSystem& files = system_files()) {
  {
    CheckpointUnderConstruction checkpoint(directory, state.step, files);
    checkpoint.commit(state, write_shards(checkpoint.directory(), state.weights, state.optimizer, {}, files));
  }
  remove_obsolete(directory, {keep}, files);
}

inline bool same(const NamedTensors& a, const NamedTensors& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, tensor] : a) {
    if (b.count(name) == 0 || !tensor.equal(b.at(name))) return false;
  }
  return true;
}

inline std::string complaint_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was wrong";
}

}  // namespace gyre::testing_support
