// Weights as a layer reads them: tensors and the number of their version.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gyre {

// Identifies the values of a stage's weights. Within one segment equal ids mean equal values.
struct VersionId {
  static constexpr int64_t kUnknown = -1;
  int64_t number = kUnknown;  // the number of updates that made this version
  bool corrected = false;     // the corrected copy that backwards read under WeightPolicy::Corrected
  bool is_known() const { return number != kUnknown; }
  bool operator==(const VersionId&) const = default;
};

// The weights of a stage, or of one of its layers, in the order of its parameters and in the compute type.
class WeightView {
 public:
  WeightView(std::span<const at::Tensor> tensors, VersionId version = {}) : tensors_(tensors), version_(version) {}
  WeightView(const std::vector<at::Tensor>& tensors, VersionId version = {}) : tensors_(tensors), version_(version) {}

  const at::Tensor& operator[](size_t i) const { return tensors_[i]; }
  size_t size() const { return tensors_.size(); }
  std::span<const at::Tensor> tensors() const { return tensors_; }
  VersionId version() const { return version_; }
  WeightView part(size_t first, size_t count) const { return {tensors_.subspan(first, count), version_}; }

 private:
  std::span<const at::Tensor> tensors_;
  VersionId version_;
};

}  // namespace gyre
