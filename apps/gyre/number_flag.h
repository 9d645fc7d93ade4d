// Flags that take a number. Anything else, or a number out of range, is refused with a message that says what may be
// given.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "gyre/core/error.h"
#include "gyre/core/text.h"

namespace gyre::app {

// Without `max`: any number from `min` on.
template <typename T>
struct NumberRange {
  T min;
  T max = std::numeric_limits<T>::max();
};

// Throws InputError that names the flag, what was given and what may be given.
template <typename T>
void check_number(const std::string& flag, const std::string& text, const NumberRange<T>& range) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const bool out_of_range = error == std::errc::result_out_of_range && rest == end;
  if (!out_of_range && (error != std::errc{} || rest != end)) {
    throw InputError(
        fmt::format("{} is '{}'; give a {}", flag, printable(text), std::is_integral_v<T> ? "whole number" : "number"));
  }
  if (!out_of_range && value >= range.min && value <= range.max) return;  // no comparison holds for nan
  throw InputError(range.max == std::numeric_limits<T>::max() && !out_of_range
                       ? fmt::format("{} is {}; give {} or more", flag, text, range.min)
                       : fmt::format("{} is {}; give {} to {}", flag, text, range.min, range.max));
}

template <typename T>
CLI::Option* add_number(CLI::App& command, const std::string& flag, T& field,
                        NumberRange<std::type_identity_t<T>> range, const std::string& meaning) {
  const auto check = [flag, range](const std::string& text) {
    check_number(flag, text, range);
    return std::string();
  };
  return command.add_option(flag, field, meaning)->check(CLI::Validator(check, ""));
}

}  // namespace gyre::app
