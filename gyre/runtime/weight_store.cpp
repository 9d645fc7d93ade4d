#include "gyre/runtime/weight_store.h"

#include <utility>

namespace gyre {

WeightStore::WeightStore(std::vector<ParameterSpec> specs, at::ScalarType compute, at::Device device)
    : specs_(std::move(specs)), compute_(compute), device_(device) {
  if (compute_ == at::kFloat) {
    latest_ = take_free_buffer();
    masters_ = latest_->buffer;
  } else {
    masters_ = make_flat_buffer(specs_, at::kFloat, device_);
    publish();
  }
}

std::shared_ptr<WeightVersion> WeightStore::take_free_buffer() {
  for (const auto& version : versions_) {
    if (version.use_count() == 1) return version;  // only this list holds it
  }
  auto version = std::make_shared<WeightVersion>();
  version->buffer = make_flat_buffer(specs_, compute_, device_);
  versions_.push_back(version);
  return version;
}

void WeightStore::publish() {
  latest_.reset();  // the outgoing version's buffer is free unless a reader holds it
  latest_ = take_free_buffer();
  latest_->number = version_;
  if (compute_ != at::kFloat) latest_->buffer.flat.copy_(masters_.flat);
}

std::span<const at::Tensor> WeightStore::begin_update() {
  // fp32: the latest version is the master. If anyone but this store (the list and latest_) reads it, the update goes
  // to a copy and the readers keep the old buffer.
  if (compute_ == at::kFloat && latest_.use_count() > 2) {
    auto next = take_free_buffer();
    next->buffer.flat.copy_(masters_.flat);
    latest_ = std::move(next);
    masters_ = latest_->buffer;
  }
  return masters_.tensors;
}

void WeightStore::finish_update() {
  restart(version_ + 1);
}

void WeightStore::restart(int64_t version) {
  version_ = version;
  if (compute_ == at::kFloat) {
    latest_->number = version_;
  } else {
    publish();
  }
}

size_t WeightStore::live_buffers() const {
  size_t live = compute_ == at::kFloat ? 0 : 1;
  for (const auto& version : versions_) live += version.use_count() > 1 ? 1 : 0;
  return live;
}

}  // namespace gyre
