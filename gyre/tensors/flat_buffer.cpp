#include "gyre/tensors/flat_buffer.h"

#include "gyre/tensors/shape.h"

namespace gyre {
namespace {

int64_t padded(int64_t count) {
  return (count + 31) / 32 * 32;
}

}  // namespace

int64_t flat_elements(std::span<const ParameterSpec> specs) {
  int64_t total = 0;
  for (const ParameterSpec& spec : specs) total += padded(numel(spec.shape));
  return total;
}

FlatBuffer make_flat_buffer(std::span<const ParameterSpec> specs, at::ScalarType type, at::Device device) {
  const at::Tensor flat = at::zeros({flat_elements(specs)}, at::TensorOptions().dtype(type).device(device));
  return view_flat_buffer(flat, specs);
}

FlatBuffer view_flat_buffer(const at::Tensor& flat, std::span<const ParameterSpec> specs) {
  FlatBuffer buffer;
  buffer.flat = flat;
  int64_t offset = 0;
  for (const ParameterSpec& spec : specs) {
    const int64_t count = numel(spec.shape);
    buffer.tensors.push_back(flat.narrow(0, offset, count).view(spec.shape));
    offset += padded(count);
  }
  return buffer;
}

}  // namespace gyre
