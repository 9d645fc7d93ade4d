// The numbers in metrics.jsonl that are exported to TensorBoard and Prometheus, and their names there.
#pragma once

#include <array>
#include <vector>

#include "gyre/report/metrics_reader.h"

namespace gyre {

struct ScalarKind {
  const char* event;   // the "event" of the lines that have it
  const char* field;   // its field: a number or, with an `index`, an array of numbers
  const char* index;   // what indexes the array: "stage", "worker" or "process"; empty: one number
  const char* tag;     // its name in TensorBoard
  const char* metric;  // its name in Prometheus
  const char* help;
};

inline constexpr std::array<ScalarKind, 13> kScalarKinds = {{
    {"step", "loss", "", "train/loss", "gyre_loss", "Mean loss of the last update's microbatches"},
    {"step", "lr", "", "train/learning_rate", "gyre_learning_rate", "Learning rate"},
    {"step", "grad_norm", "", "train/gradient_norm", "gyre_gradient_norm", "Norm of the gradient before it is clipped"},
    {"step", "tokens", "", "train/tokens", "gyre_tokens", "Tokens trained on since the run began"},
    {"step", "tokens_per_second", "", "train/tokens_per_second", "gyre_tokens_per_second", "Tokens a second"},
    {"eval", "val_loss", "", "validation/loss", "gyre_validation_loss", "Loss of the last evaluation"},
    {"eval", "ema_val_loss", "", "validation/ema_loss", "gyre_validation_ema_loss",
     "Loss of the last evaluation, in the averages of the weights"},
    {"segment", "delays", "stage", "delay/stage", "gyre_delay_updates",
     "Updates that a gradient is late by, mean between the last two drains"},
    {"segment", "bubbles", "worker", "bubble/worker", "gyre_bubble_ratio",
     "Share of a worker's time without work between the last two drains"},
    {"segment", "peak_tensor_bytes", "process", "memory/peak_tensors_of_process", "gyre_peak_tensor_bytes",
     "The most bytes of large tensors that a process held at once"},
    {"segment", "peak_resident_bytes", "process", "memory/peak_resident_of_process", "gyre_peak_resident_bytes",
     "The most memory that a process held at once"},
    {"checkpoint", "wait_seconds", "", "checkpoint/wait_seconds", "gyre_checkpoint_wait_seconds",
     "Seconds that training stood still for the last checkpoint"},
    {"checkpoint", "write_seconds", "", "checkpoint/write_seconds", "gyre_checkpoint_write_seconds",
     "Seconds that writing the last checkpoint took"},
}};

struct Scalar {
  const ScalarKind* kind;
  int index;  // 0 if the kind has no index
  double value;
};

// The finite numbers of a line, of the kinds above; empty for lines that have none.
std::vector<Scalar> scalars_of(const MetricsLine& line);

}  // namespace gyre
