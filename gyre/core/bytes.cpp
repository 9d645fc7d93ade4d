#include "gyre/core/bytes.h"

#include <fmt/format.h>

#include <exception>
#include <limits>

#include "gyre/core/text.h"

namespace gyre {

std::optional<int64_t> parse_bytes(const std::string& text) {
  size_t used = 0;
  double number = 0;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
    return std::nullopt;
  }
  if (used < text.size() && text[used] == ' ') ++used;
  const std::string unit = text.substr(used);
  const std::pair<const char*, double> units[] = {{"", 1},         {"B", 1},        {"KiB", 1024.0},
                                                  {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
                                                  {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9}};
  for (const auto& [name, factor] : units) {
    const double bytes = number * factor;
    if (unit == name && bytes >= 1 && bytes < 9e18) return static_cast<int64_t>(bytes);
  }
  return std::nullopt;
}

std::pair<std::string, std::string> distinct_bytes(double a, double b) {
  int digits = 1;
  const auto text = [&](double bytes) { return human_bytes(bytes, digits); };
  while (a != b && text(a) == text(b) && digits < std::numeric_limits<double>::digits10) ++digits;
  return {text(a), text(b)};
}

}  // namespace gyre
