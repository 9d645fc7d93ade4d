// The parsers that are fuzzed, one function each. It passes an input to the parser and throws unless the result is a
// valid value or an InputError. libfuzzer.cpp calls them with generated inputs, corpus_test.cpp with those in
// corpus/<name>/.
#pragma once

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "gyre/core/error.h"

namespace gyre::fuzz {

struct Target {
  const char* name;
  void (*run)(std::string_view input);
};

std::span<const Target> targets();
// Null if there is none of that name.
const Target* find_target(std::string_view name);

// Throws if a promise does not hold. The exception is not an InputError, so it is not taken for a refusal.
inline void require(bool holds, const char* promise) {
  if (!holds) throw std::logic_error(std::string("does not hold: ") + promise);
}

// The result of `parse`, or nullopt if it refuses the input in the one permitted way: with an InputError that says why.
template <typename Parse>
std::optional<std::invoke_result_t<Parse>> accepted(Parse&& parse) {
  try {
    return parse();
  } catch (const InputError& error) {
    require(error.what()[0] != '\0', "a refusal says why");
    return std::nullopt;
  }
}

void schedule_text(std::string_view input);
void schedule_csv(std::string_view input);
void config(std::string_view input);
void overrides(std::string_view input);
void study(std::string_view input);
void costs(std::string_view input);
void measured_layers(std::string_view input);
void cluster(std::string_view input);
void safetensors(std::string_view input);
void manifest(std::string_view input);
void shard_index(std::string_view input);
void config_json(std::string_view input);
void provenance(std::string_view input);
void llmc_model(std::string_view input);
void parts_mark(std::string_view input);
void meta(std::string_view input);
void token_file(std::string_view input);
void megatron_index(std::string_view input);
void text(std::string_view input);
void metrics(std::string_view input);
void live(std::string_view input);
void trace(std::string_view input);
void tokenizer(std::string_view input);
void tokenizer_json(std::string_view input);
void token_files(std::string_view input);
void tokenizer_pattern(std::string_view input);

}  // namespace gyre::fuzz
