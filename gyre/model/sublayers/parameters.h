// The list of a layer's parameters, in which sublayers declare theirs.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "gyre/tensors/parameter.h"

namespace gyre {

inline constexpr float kInitialDeviation = 0.02f;  // GPT-2's and BERT's

class ParameterList {
 public:
  // The add functions return the parameter's index among the layer's weights and gradients.
  size_t add(ParameterSpec spec) {
    specs_.push_back(std::move(spec));
    return specs_.size() - 1;
  }
  size_t add_vector(const std::string& name, int64_t size, Initialization::Kind kind) {
    ParameterSpec spec;
    spec.name = name;
    spec.shape = {size};
    spec.initialization = {kind, 0};
    return add(std::move(spec));
  }
  // An embedding's table: decays, but is not rotated.
  size_t add_table(const std::string& name, int64_t rows, int64_t width) {
    ParameterSpec spec;
    spec.name = name;
    spec.shape = {rows, width};
    spec.initialization = {Initialization::Kind::Normal, kInitialDeviation};
    spec.decay = true;
    return add(std::move(spec));
  }

  const std::vector<ParameterSpec>& specs() const { return specs_; }

 private:
  std::vector<ParameterSpec> specs_;
};

}  // namespace gyre
