// How many elements a tensor of a shape has.
#pragma once

#include <cstdint>
#include <span>

namespace gyre {

inline int64_t numel(std::span<const int64_t> shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  return elements;
}

// For what is computed of a configuration before it is checked: a wrong one's sizes fit no integer.
inline double numel_as_double(std::span<const int64_t> shape) {
  double elements = 1;
  for (const int64_t size : shape) elements *= static_cast<double>(size);
  return elements;
}

}  // namespace gyre
