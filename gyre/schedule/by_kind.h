// Values by kind of action and replica.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "gyre/schedule/schedule.h"

namespace gyre {

// Memory is allocated only for the kinds that occur.
template <typename Value>
class ByKind {
 public:
  explicit ByKind(const Schedule& schedule)
      : stages_(static_cast<size_t>(schedule.stages)), replicas_(stages_ * static_cast<size_t>(schedule.pipelines)) {}

  const Value* find(ActionKind kind, int pipeline, int stage) const {
    const auto& values = values_[number(kind)];
    return values.empty() ? nullptr : &values[place(pipeline, stage)];
  }
  Value& at(ActionKind kind, int pipeline, int stage) {
    auto& values = values_[number(kind)];
    if (values.empty()) values.resize(replicas_);
    return values[place(pipeline, stage)];
  }

 private:
  static size_t number(ActionKind kind) {
    switch (kind) {
      case ActionKind::Forward:
        return 0;
      case ActionKind::Backward:
        return 1;
      case ActionKind::BackwardInput:
        return 2;
      case ActionKind::BackwardWeights:
        return 3;
      case ActionKind::Update:
        return 4;
      case ActionKind::Adopt:
        return 5;
    }
    return 0;
  }
  size_t place(int pipeline, int stage) const {
    return static_cast<size_t>(pipeline) * stages_ + static_cast<size_t>(stage);
  }

  size_t stages_, replicas_;
  std::array<std::vector<Value>, 6> values_;
};

// The number of actions of each kind and replica.
class ActionCounts {
 public:
  explicit ActionCounts(const Schedule& schedule) : counts_(schedule) {}
  void add(ActionKind kind, int pipeline, int stage) { ++counts_.at(kind, pipeline, stage); }
  int64_t of(ActionKind kind, int pipeline, int stage) const {
    const int* count = counts_.find(kind, pipeline, stage);
    return count == nullptr ? 0 : *count;
  }

 private:
  ByKind<int> counts_;
};

}  // namespace gyre
