// The weights of one owner: fp32 masters, and every version of them that some replica still reads. Versions are lent: a
// version's buffer is reused once its last reader releases it, on whatever thread that is.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "gyre/optim/optimizer.h"
#include "gyre/runtime/transport/link.h"
#include "gyre/runtime/weight_forecast.h"
#include "gyre/tensors/buffer_pool.h"
#include "gyre/tensors/weight_view.h"

namespace gyre {

// One version. Readers hold it by shared_ptr; its values never change while they do.
struct WeightVersion {
  int64_t number = 0;
  FlatBuffer buffer;     // with several shards: their tensors, without a flat one
  FlatBuffer corrected;  // for backwards whose forwards read an earlier version; empty unless versions are corrected
  Lease lease;           // on the buffers' memory

  WeightView for_forward() const { return {buffer.tensors, {number}}; }
  WeightView for_backward() const {
    return corrected.tensors.empty() ? for_forward() : WeightView(corrected.tensors, {number, true});
  }
};
using WeightReader = std::shared_ptr<const WeightVersion>;

// A version as a message to a replica elsewhere, and back. Its memory stays lent until the replica's version is
// destroyed.
Message to_message(const WeightVersion& version, int64_t number);
WeightReader to_version(Message message, std::span<const ParameterSpec> specs);
// One version made of its shards, given in order.
WeightReader joined(std::vector<WeightReader> shards);

// Bytes of masters per parameter, besides the newest version, at a stage whose weights are not forecast.
int64_t master_bytes(at::ScalarType compute, at::Device device);
// Bytes per parameter that a forecast with this policy adds to them.
int64_t forecast_bytes(at::ScalarType compute, WeightPolicy weights, at::Device device);

class WeightStore {
 public:
  // compute: at::kFloat or at::kBFloat16. With fp32 the newest version *is* the master, and an update copies it only if
  // it is lent. With bf16 the newest version is one half of the master (optim/parameter/split_weight.h). Every version
  // is a copy, and masters are tensors of their own, with a forecast, whatever the type, and with bf16 on a device,
  // whose optimizers have no kernels for halves: joining them would take more memory than halves save.
  WeightStore(std::vector<ParameterSpec> specs, at::ScalarType compute, at::Device device,
              const ForecastOptions& forecast = {});

  const std::vector<ParameterSpec>& specs() const { return specs_; }
  int64_t version() const { return version_; }
  // The current fp32 master of one parameter: the live tensor, or a new one made from its halves. masters(): all of
  // them.
  at::Tensor master(size_t i) const;
  std::vector<at::Tensor> masters() const;
  // The newest version, for as long as the result is held.
  WeightReader read() const;
  // A version with the newest version's number and these values (fp32, flat).
  WeightReader read_with(const at::Tensor& values);

  // Makes the next version: a step of the optimizer, or the same weights if the gradients' norm is not finite. Then the
  // optimizer's state, moments and bases among it, stays what it is.
  void update(Optimizer& optimizer, std::span<const at::Tensor> gradients, double norm, const UpdateContext& context);
  // Sets the version number, and the weights (fp32, by parameter) if they are given.
  void restart(int64_t version, const std::function<at::Tensor(size_t)>& weights);
  void restart(int64_t version);
  // Call when the pipeline is empty: the newest version is published as it is, without a forecast.
  void begin_segment();

  // Buffers of versions alive now, and of separate masters: what the memory model counts. Any thread.
  size_t live_buffers() const { return pool_.live() + (masters_.flat.defined() ? 1 : 0); }

 private:
  // Where masters are. InPlace: the newest version. Split: the newest version and rests_. Separate: masters_.
  enum class Masters { InPlace, Split, Separate };

  // A version with the newest number and the buffer's contents; the buffer is lent to it.
  std::shared_ptr<WeightVersion> lent(const PooledBuffer& buffer) const;
  // Masters that no reader sees, to be updated in place. Not for Split.
  std::span<const at::Tensor> own_masters();
  // Makes a version from separate masters.
  void publish();
  SplitWeight halves(size_t i, const FlatBuffer& next) const;
  void update_halves(Optimizer& optimizer, std::span<const at::Tensor> gradients, const UpdateContext& context);

  std::vector<ParameterSpec> specs_;
  WeightForecast forecast_;
  Masters kind_;
  int64_t version_ = 0;
  BufferPool pool_, corrected_pool_;
  PooledBuffer newest_, corrected_;
  FlatBuffer masters_;  // fp32
  FlatBuffer rests_;    // int16: what rounding to bf16 took from each weight
};

}  // namespace gyre
