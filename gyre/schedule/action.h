// An action: one thing that a worker does. Schedules consist of actions; everything else (messages, reductions) follows
// from them.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace gyre {

// The letter is the kind in the text form.
enum class ActionKind : char {
  Forward = 'F',
  Backward = 'B',         // both halves
  BackwardInput = 'I',    // gradient with respect to the stage's input
  BackwardWeights = 'W',  // gradients with respect to its weights
  Update = 'U',           // an owner applies a window; `microbatch` is the window's number, `pipeline` the shard's
  Adopt = 'A',            // a replica takes the version that update made; `microbatch` is the window's number
};

// Only 16 bytes: programs of deep pipelines have a hundred million actions, and reading them takes most of the time.
struct Action {
  ActionKind kind : 8 = ActionKind::Forward;
  int pipeline : 24 = 0;
  int stage = 0;
  int64_t microbatch = 0;  // global number; for Update and Adopt the number of the window

  auto operator<=>(const Action&) const = default;
  bool is_per_window() const { return kind == ActionKind::Update || kind == ActionKind::Adopt; }
};
static_assert(sizeof(Action) == 16);

// "2F17", or "1:2F17" when `pipelines` > 1.
std::string to_string(const Action& action, int pipelines);
// The inverse of to_string. Strict: no spaces, signs or leading zeros. Throws InputError that quotes the text and says
// what is expected.
Action parse_action(std::string_view text, int pipelines);

}  // namespace gyre
