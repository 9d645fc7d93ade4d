// The weights of one stage on its owner: fp32 masters, and every version of them that some replica still reads.
// Versions are lent: a version's buffer is used again when its last reader lets go of it, on whatever thread
// that is.
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

// One version. Readers hold it by shared_ptr; what they hold never changes.
struct WeightVersion {
  int64_t number = 0;
  FlatBuffer buffer;     // of several shards: their tensors, in no flat one
  FlatBuffer corrected;  // what backwards read instead; empty unless they do
  Lease lease;           // of the buffers' memory

  WeightView for_forward() const { return {buffer.tensors, {number}}; }
  WeightView for_backward() const {
    return corrected.tensors.empty() ? for_forward() : WeightView(corrected.tensors, {number, true});
  }
};
using WeightReader = std::shared_ptr<const WeightVersion>;

// A version on its way to a replica elsewhere; the memory stays lent until the replica's version dies.
Message to_message(const WeightVersion& version, int64_t number);
WeightReader to_version(Message message, std::span<const ParameterSpec> specs);
// One version whose shards have come by themselves, in their order.
WeightReader joined(std::vector<WeightReader> shards);

// Bytes of masters for each parameter, beside the newest version.
int64_t master_bytes(at::ScalarType compute, WeightPolicy weights);

class WeightStore {
 public:
  // compute: at::kFloat or at::kBFloat16. With fp32 the newest version *is* the master, and an update copies it only if
  // it is lent. With bf16 the newest version is half of the master (optim/parameter/split_weight.h). With a forecast
  // every version is a copy, whatever the type, and masters are tensors of their own.
  WeightStore(std::vector<ParameterSpec> specs, at::ScalarType compute, at::Device device,
              const ForecastOptions& forecast = {});

  const std::vector<ParameterSpec>& specs() const { return specs_; }
  int64_t version() const { return version_; }
  // fp32, current, of one parameter: the live tensor, or one put together anew. And of all of them.
  at::Tensor master(size_t i) const;
  std::vector<at::Tensor> masters() const;
  // The newest version, for as long as the result is held.
  WeightReader read() const;
  // As the newest version, with these values (fp32, flat) in the place of its own.
  WeightReader read_with(const at::Tensor& values);

  // The next version: a step of the optimizer, or the same weights if the gradients' norm is not finite.
  void update(Optimizer& optimizer, std::span<const at::Tensor> gradients, const at::Tensor& norm,
              const UpdateContext& context);
  // Version `version`, set rather than advanced: of these weights (fp32, by parameter), or of those that are there.
  void restart(int64_t version, const std::function<at::Tensor(size_t)>& weights);
  void restart(int64_t version);
  // The pipeline is empty: the newest version is published as it is, without a forecast.
  void begin_segment();

  // Buffers of versions alive now, and of masters that are tensors of their own: what the memory model counts. Any
  // thread.
  size_t live_buffers() const { return pool_.live() + (masters_.flat.defined() ? 1 : 0); }

 private:
  // Where masters are. InPlace: in the newest version. Split: in it and in rests_. Separate: in masters_.
  enum class Masters { InPlace, Split, Separate };

  // The newest version with what is in the buffer, which is lent to it.
  std::shared_ptr<WeightVersion> lent(const PooledBuffer& buffer) const;
  // Whole masters that nobody reads, to be changed.
  std::span<const at::Tensor> own_masters();
  // Makes a version of separate masters.
  void publish();
  SplitWeight halves(size_t i, const FlatBuffer& next) const;
  void update_halves(Optimizer& optimizer, std::span<const at::Tensor> gradients, const at::Tensor& norm,
                     const UpdateContext& context);

  std::vector<ParameterSpec> specs_;
  WeightForecast forecast_;
  Masters kind_;
  int64_t version_ = 0;
  BufferPool pool_, corrected_pool_;
  PooledBuffer newest_, corrected_;
  FlatBuffer masters_;  // fp32
  FlatBuffer rests_;    // int16
};

}  // namespace gyre
