#include "gyre/schedule/action.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/schedule/limits.h"

namespace gyre {
namespace {

// Parses the number at the front of `text` and removes it from there. nullopt if there is none, or if it has a sign or
// leading zeros or is above `most`.
std::optional<int64_t> take_number(std::string_view& text, int64_t most) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto length = static_cast<size_t>(end - text.data());
  if (error != std::errc{} || text[0] == '-' || (text[0] == '0' && length > 1) || value > most) return std::nullopt;
  text.remove_prefix(length);
  return value;
}

std::optional<Action> try_parse(std::string_view text, int pipelines) {
  Action action;
  if (pipelines > 1) {
    const auto pipeline = take_number(text, pipelines - 1);
    if (!pipeline || text.empty() || text[0] != ':') return std::nullopt;
    action.pipeline = static_cast<int>(*pipeline);
    text.remove_prefix(1);
  }
  const auto stage = take_number(text, kMostStages - 1);
  if (!stage || text.empty() || std::string_view("FBIWUA").find(text[0]) == std::string_view::npos) return std::nullopt;
  action.stage = static_cast<int>(*stage);
  action.kind = static_cast<ActionKind>(text[0]);
  text.remove_prefix(1);
  const auto microbatch = take_number(text, kMostMicrobatch);
  if (!microbatch || !text.empty()) return std::nullopt;
  action.microbatch = *microbatch;
  return action;
}

}  // namespace

std::string to_string(const Action& action, int pipelines) {
  const std::string rest = fmt::format("{}{}{}", action.stage, static_cast<char>(action.kind), action.microbatch);
  return pipelines > 1 ? fmt::format("{}:{}", action.pipeline, rest) : rest;
}

Action parse_action(std::string_view text, int pipelines) {
  if (const auto action = try_parse(text, pipelines)) return *action;
  throw InputError(fmt::format("'{}' is not an action; expected stage, one of F B I W U A, and microbatch, like {}",
                               printable(text),
                               pipelines > 1 ? "1:2F17 (pipeline 1, stage 2, microbatch 17)" : "2F17"));
}

}  // namespace gyre
