// A map for numbers that come and go in nearly ascending order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace gyre {

// Values by (slot, index), where the live indices of a slot lie close together: a small ring for each slot, doubled
// when two live indices meet.
template <typename Value>
class RingMap {
 public:
  explicit RingMap(size_t slots, size_t capacity = 2) : slots_(slots), capacity_(capacity), cells_(slots * capacity) {}

  Value* find(size_t slot, int64_t index) {
    Cell& cell = cell_of(slot, index);
    return cell.index == index ? &cell.value : nullptr;
  }
  // Finds, or makes one with the default value.
  Value& at(size_t slot, int64_t index) {
    Cell& cell = cell_of(slot, index);
    if (cell.index != index && cell.index != kFree) {
      grow();
      return at(slot, index);
    }
    cell.index = index;
    return cell.value;
  }
  void erase(size_t slot, int64_t index) { cell_of(slot, index) = Cell{}; }

 private:
  static constexpr int64_t kFree = -1;
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
};

}  // namespace gyre
