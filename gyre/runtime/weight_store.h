// The weights of one stage on its owner: fp32 masters, and a compute copy for every version that some replica still
// reads. A version dies, and its buffer is reused, when its last reader lets go of it, on whatever thread that is.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gyre/model/parameter.h"
#include "gyre/runtime/flat_buffer.h"
#include "gyre/runtime/weight_forecast.h"

namespace gyre {

// One version as layers read it. Readers hold it by shared_ptr; what they hold never changes. Memory is used again for
// later versions, tensor objects are not.
struct WeightVersion {
  int64_t number = 0;
  FlatBuffer buffer;
  FlatBuffer corrected;  // what backwards read instead; empty unless they do

  const std::vector<at::Tensor>& for_backward() const {
    return corrected.tensors.empty() ? buffer.tensors : corrected.tensors;
  }
};
using WeightReader = std::shared_ptr<const WeightVersion>;

class WeightStore {
 public:
  // compute: at::kFloat or at::kBFloat16. With fp32 the latest version *is* the master, and an update copies it only if
  // somebody may still read it; with bf16 every version is a converted copy. `shared`: readers are on other threads
  // too, so that nobody can tell whether they still read. With a forecast every version is a copy, whatever the type.
  WeightStore(std::vector<ParameterSpec> specs, at::ScalarType compute, at::Device device, bool shared = false,
              const ForecastOptions& forecast = {});

  const std::vector<ParameterSpec>& specs() const { return specs_; }
  int64_t version() const { return version_; }
  // fp32, current.
  std::span<const at::Tensor> masters() const { return masters_.tensors; }
  // The newest version, for as long as the result is held.
  WeightReader read() const { return latest_; }

  // An update: change the tensors that begin_update returns, then finish_update makes them the next version.
  std::span<const at::Tensor> begin_update();
  void finish_update();
  // As finish_update after loading a checkpoint: `version` is set rather than advanced.
  void restart(int64_t version);
  // The pipeline is empty: the newest version is published as it is, without a forecast.
  void begin_segment();

  // Buffers alive now, masters included: what the memory model counts. Any thread.
  size_t live_buffers() const;

 private:
  class BufferPool;
  std::shared_ptr<WeightVersion> take_buffer();
  void publish();
  void make_version(int64_t version);
  // Whether the newest version is the master itself.
  bool in_place() const { return compute_ == at::kFloat && !forecast_.any(); }

  std::vector<ParameterSpec> specs_;
  at::ScalarType compute_;
  at::Device device_;
  bool shared_;
  WeightForecast forecast_;
  int64_t version_ = 0;
  FlatBuffer masters_;
  std::shared_ptr<BufferPool> pool_;  // outlives the readers
  std::shared_ptr<WeightVersion> latest_;
};

}  // namespace gyre
