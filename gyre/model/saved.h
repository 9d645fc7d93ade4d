// What a layer saves for the backward of one microbatch: a record of the layer's own type. Owned by the microbatch in
// flight; emptied by the backward, so that memory is freed as early as possible.
#pragma once

#include <ATen/core/Tensor.h>

#include <cassert>
#include <functional>
#include <memory>
#include <utility>

#include "gyre/model/sublayers/record.h"

namespace gyre {

class Saved {
 public:
  template <typename Record>
  void keep(Record record) {
    holder_ = std::make_unique<HolderOf<Record>>(std::move(record));
  }
  // Record: the type that was given to keep().
  template <typename Record>
  Record& get() {
    assert(dynamic_cast<HolderOf<Record>*>(holder_.get()) != nullptr);
    return static_cast<HolderOf<Record>*>(holder_.get())->record;
  }
  void clear() { holder_.reset(); }

  void for_each_tensor(const std::function<void(const at::Tensor&)>& visit) const {
    if (holder_) holder_->for_each_tensor(visit);
  }

 private:
  struct Holder {
    virtual ~Holder() = default;
    virtual void for_each_tensor(const std::function<void(const at::Tensor&)>& visit) const = 0;
  };
  template <typename Record>
  struct HolderOf final : Holder {
    explicit HolderOf(Record kept) : record(std::move(kept)) {}
    void for_each_tensor(const std::function<void(const at::Tensor&)>& visit) const override {
      gyre::for_each_tensor(record, visit);
    }
    Record record;
  };

  std::unique_ptr<Holder> holder_;
};

// For records that contain another layer's Saved.
template <typename Visit>
void for_each_tensor(const Saved& saved, Visit&& visit) {
  saved.for_each_tensor(visit);
}

}  // namespace gyre
