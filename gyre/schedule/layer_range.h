// Which of a model's layers a stage has.
#pragma once

namespace gyre {

// Layers [begin, end), counted through the model.
struct LayerRange {
  int begin = 0;
  int end = 0;
};

}  // namespace gyre
