// The weights of one stage on its owner: fp32 masters, and a compute copy for every version that some replica still
// reads. Versions are lent: a version's buffer is used again when its last reader lets go of it, on whatever thread
// that is.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

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

class WeightStore {
 public:
  // compute: at::kFloat or at::kBFloat16. With fp32 the newest version *is* the master, and an update copies it only if
  // it is lent; with bf16 every version is a converted copy. With a forecast every version is a copy, whatever the
  // type.
  WeightStore(std::vector<ParameterSpec> specs, at::ScalarType compute, at::Device device,
              const ForecastOptions& forecast = {});

  const std::vector<ParameterSpec>& specs() const { return specs_; }
  int64_t version() const { return version_; }
  // fp32, current.
  std::span<const at::Tensor> masters() const { return master_buffer().tensors; }
  // The newest version, for as long as the result is held.
  WeightReader read() const;
  // As the newest version, with these values (fp32, flat) in the place of its own.
  WeightReader read_with(const at::Tensor& values);

  // An update: change the tensors that begin_update returns, then finish_update makes them the next version.
  std::span<const at::Tensor> begin_update();
  // During an update, what the next version is to be of: bf16 copies of the masters. Who makes them writes them here
  // and says so to finish_update, which does it otherwise. Empty where versions are no such copies.
  std::span<const at::Tensor> next_version();
  void finish_update(bool version_is_written = false);
  // As finish_update after loading a checkpoint: `version` is set rather than advanced.
  void restart(int64_t version);
  // The pipeline is empty: the newest version is published as it is, without a forecast.
  void begin_segment();

  // Buffers alive now, masters included: what the memory model counts. Any thread.
  size_t live_buffers() const { return pool_.live() + (in_place() ? 0 : 1); }

 private:
  // The newest version with what is in the buffer, which is lent to it.
  std::shared_ptr<WeightVersion> lent(const PooledBuffer& buffer) const;
  void publish();
  void take_next();
  // Whether the newest version is the master itself.
  bool in_place() const { return compute_ == at::kFloat && !forecast_.any(); }
  const FlatBuffer& master_buffer() const { return in_place() ? *newest_ : separate_masters_; }

  std::vector<ParameterSpec> specs_;
  at::ScalarType compute_;
  WeightForecast forecast_;
  int64_t version_ = 0;
  BufferPool pool_, corrected_pool_;
  PooledBuffer newest_, corrected_;
  FlatBuffer separate_masters_;  // empty when the newest version is the master
};

}  // namespace gyre
