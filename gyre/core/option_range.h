// Names of option types for messages, and checks of option values against their ranges.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/core/options.h"
#include "gyre/core/text.h"

namespace gyre {

template <typename T>
constexpr const char* type_name() {
  if constexpr (std::is_same_v<T, bool>)
    return "true or false";
  else if constexpr (std::is_same_v<T, int64_t>)
    return "a whole number";
  else if constexpr (std::is_same_v<T, double>)
    return "a number";
  else if constexpr (std::is_same_v<T, std::string>)
    return "a string";
  else if constexpr (std::is_same_v<T, std::vector<double>>)
    return "a list of numbers";
  else if constexpr (std::is_same_v<T, std::vector<std::string>>)
    return "a list of strings";
  else
    return "a list of whole numbers";
}

// What may be given for a number: "0 to 1".
template <typename T>
std::string allowed_numbers(const Range& range) {
  constexpr double kNone = 1e300;
  if (range.most < kNone) return fmt::format("{} to {}", range.least, range.most);
  if constexpr (std::is_same_v<T, int64_t>) {
    const int64_t least = range.least > -kNone ? static_cast<int64_t>(range.least) : INT64_MIN;
    return fmt::format("{} to {}", least, INT64_MAX);
  } else {
    return fmt::format("a finite number, at least {}", range.least);
  }
}

// Throws InputError that begins with `where` and says what to give instead.
template <typename T>
void check_range(const std::string& where, const T& value, const Range& range) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (value.find('\0') != std::string::npos) {
      throw InputError(fmt::format("{} is \"{}\", which holds a NUL character; leave it out", where, printable(value)));
    }
    if (range.choices.empty() || std::find(range.choices.begin(), range.choices.end(), value) != range.choices.end())
      return;
    const std::string nearest = suggestion(value, range.choices);
    throw InputError(fmt::format("{} is \"{}\"; give one of: {}{}", where, printable(value), join(range.choices, ", "),
                                 nearest.find("did you mean") == std::string::npos ? "" : nearest));
  } else if constexpr (std::is_same_v<T, bool>) {
    return;
  } else if constexpr (std::is_arithmetic_v<T>) {
    const auto number = static_cast<double>(value);
    if (number >= range.least && number <= range.most) return;
    if (range.most >= 1e300 && std::isfinite(number)) {
      throw InputError(fmt::format("{} is {}; give at least {}", where, value, range.least));
    }
    throw InputError(fmt::format("{} is {}; give {}", where, value, allowed_numbers<T>(range)));
  } else {
    for (const auto& item : value) check_range(where, item, range);
  }
}

// Throws InputError for the first option that is out of its range. `table`: what stands before a key,
// "[optimizer.muon]".
inline void check_ranges(const std::string& table, const OptionTable& options) {
  options.each_option([&](const char* key, const auto& value, const Range& range, const char*) {
    check_range(fmt::format("{} {}", table, key), value, range);
  });
}
// Throws InputError for the first fault, if there is any.
inline void check_faults(const std::string& table, const std::vector<OptionFault>& faults) {
  if (!faults.empty()) throw InputError(fmt::format("{} {} {}", table, faults[0].keys[0], faults[0].what));
}

}  // namespace gyre
