// A map for keys that are added and removed in nearly ascending order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace gyre {

// Values by (slot, index), where the live indices of a slot are close together. Each slot has a small ring; the rings
// double when two live indices collide. An arbitrary schedule file may have indices anywhere, so once the rings are
// large, values that collide go into a std::map instead.
template <typename Value>
class RingMap {
 public:
  explicit RingMap(size_t slots, size_t capacity = 2) : slots_(slots), capacity_(capacity), cells_(slots * capacity) {}

  Value* find(size_t slot, int64_t index) {
    Cell& cell = cell_of(slot, index);
    if (cell.index == index) return &cell.value;
    if (far_.empty()) return nullptr;
    const auto found = far_.find({slot, index});
    return found == far_.end() ? nullptr : &found->second;
  }
  // Finds the value, or adds one with the default value.
  Value& at(size_t slot, int64_t index) {
    Cell& cell = cell_of(slot, index);
    if (cell.index == index) return cell.value;
    if (!far_.empty() && far_.count({slot, index}) > 0) return far_[{slot, index}];
    if (cell.index != kFree) {
      if (cells_.size() >= kMostCells) return far_[{slot, index}];
      grow();
      return at(slot, index);
    }
    cell.index = index;
    return cell.value;
  }
  void erase(size_t slot, int64_t index) {
    Cell& cell = cell_of(slot, index);
    if (cell.index == index) {
      cell = Cell{};
    } else if (!far_.empty()) {
      far_.erase({slot, index});
    }
  }

 private:
  static constexpr int64_t kFree = -1;
  static constexpr size_t kMostCells = size_t{1} << 25;
  struct Cell {
    int64_t index = kFree;
    Value value{};
  };
  Cell& cell_of(size_t slot, int64_t index) {
    return cells_[slot * capacity_ + (static_cast<size_t>(index) & (capacity_ - 1))];
  }
  void grow() {
    RingMap larger(slots_, capacity_ * 2);
    for (size_t i = 0; i < cells_.size(); ++i) {
      if (cells_[i].index != kFree) larger.at(i / capacity_, cells_[i].index) = cells_[i].value;
    }
    *this = std::move(larger);
  }

  size_t slots_;
  size_t capacity_;  // a power of two
  std::vector<Cell> cells_;
  std::map<std::pair<size_t, int64_t>, Value> far_;
};

}  // namespace gyre
