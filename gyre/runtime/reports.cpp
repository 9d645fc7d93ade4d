#include "gyre/runtime/reports.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace gyre {
namespace {

enum Kind : int64_t { kLoss, kUpdate, kHeld, kFinal };

// A final report is two tensors: one of all its integers and one of all its reals, each in the order of writing.
class Packer {
 public:
  void integer(int64_t value) { integers_.push_back(value); }
  void real(double value) { reals_.push_back(value); }
  void counts(const std::map<int64_t, int64_t>& counts) {
    integer(static_cast<int64_t>(counts.size()));
    for (const auto& [value, count] : counts) {
      integer(value);
      integer(count);
    }
  }
  std::vector<at::Tensor> tensors() const {
    return {at::tensor(integers_, at::kLong), at::tensor(reals_, at::kDouble)};
  }

 private:
  std::vector<int64_t> integers_;
  std::vector<double> reals_;
};

class Unpacker {
 public:
  explicit Unpacker(const std::vector<at::Tensor>& tensors)
      : integers_(tensors.at(0).contiguous()), reals_(tensors.at(1).contiguous()) {}
  int64_t integer() { return integers_.data_ptr<int64_t>()[next_integer_++]; }
  double real() { return reals_.data_ptr<double>()[next_real_++]; }
  std::map<int64_t, int64_t> counts() {
    std::map<int64_t, int64_t> counts;
    for (int64_t left = integer(); left > 0; --left) {
      const int64_t value = integer();
      counts[value] = integer();
    }
    return counts;
  }

 private:
  at::Tensor integers_, reals_;
  int64_t next_integer_ = 0, next_real_ = 0;
};

void pack(Packer& packer, const Action& action) {
  packer.integer(static_cast<int64_t>(action.kind));
  packer.integer(action.pipeline);
  packer.integer(action.stage);
  packer.integer(action.microbatch);
}
Action unpack_action(Unpacker& packed) {
  Action action;
  action.kind = static_cast<ActionKind>(packed.integer());
  action.pipeline = static_cast<int>(packed.integer());
  action.stage = static_cast<int>(packed.integer());
  action.microbatch = packed.integer();
  return action;
}

std::vector<at::Tensor> pack(const FinalReport& report) {
  Packer packer;
  packer.real(report.worker.busy_seconds);
  const ProcessMemory& memory = report.worker.memory;
  for (const int64_t bytes : {memory.resident, memory.peak_resident, memory.tensors, memory.peak_tensors}) {
    packer.integer(bytes);
  }
  packer.integer(static_cast<int64_t>(report.worker.trace.size()));
  for (const TimedAction& timed : report.worker.trace) {
    pack(packer, timed.action);
    packer.real(timed.start);
    packer.real(timed.end);
    packer.integer(timed.came ? 1 : 0);
    if (timed.came) packer.real(*timed.came);
  }
  packer.integer(static_cast<int64_t>(report.costs.size()));
  for (const auto& costs : report.costs) {
    packer.integer(static_cast<int64_t>(costs.size()));
    for (const auto& [kind, cost] : costs) {
      packer.integer(static_cast<int64_t>(kind));
      packer.integer(cost.count);
      packer.real(cost.seconds);
      packer.real(cost.first_seconds);
    }
  }
  packer.integer(static_cast<int64_t>(report.replicas.size()));
  for (const FinalReport::Replica& replica : report.replicas) {
    packer.integer(replica.stage);
    packer.integer(replica.sizes.activation_bytes);
    packer.integer(replica.sizes.output_bytes);
    packer.counts(replica.delay);
    packer.counts(replica.mismatch);
  }
  return packer.tensors();
}

FinalReport unpack(const std::vector<at::Tensor>& tensors) {
  Unpacker packed(tensors);
  FinalReport report;
  report.worker.busy_seconds = packed.real();
  ProcessMemory& memory = report.worker.memory;
  for (int64_t* const bytes : {&memory.resident, &memory.peak_resident, &memory.tensors, &memory.peak_tensors}) {
    *bytes = packed.integer();
  }
  report.worker.trace.resize(static_cast<size_t>(packed.integer()));
  for (TimedAction& timed : report.worker.trace) {
    timed.action = unpack_action(packed);
    timed.start = packed.real();
    timed.end = packed.real();
    if (packed.integer() != 0) timed.came = packed.real();
  }
  report.costs.resize(static_cast<size_t>(packed.integer()));
  for (auto& costs : report.costs) {
    for (int64_t left = packed.integer(); left > 0; --left) {
      ActionCost& cost = costs[static_cast<ActionKind>(packed.integer())];
      cost.count = packed.integer();
      cost.seconds = packed.real();
      cost.first_seconds = packed.real();
    }
  }
  report.replicas.resize(static_cast<size_t>(packed.integer()));
  for (FinalReport::Replica& replica : report.replicas) {
    replica.stage = static_cast<int>(packed.integer());
    replica.sizes.activation_bytes = packed.integer();
    replica.sizes.output_bytes = packed.integer();
    replica.delay = packed.counts();
    replica.mismatch = packed.counts();
  }
  return report;
}

struct ToMessage {
  Message operator()(const LossReport& report) const {
    return {kLoss, {report.loss}, {static_cast<double>(report.microbatch)}, {}};
  }
  Message operator()(const UpdateReport& report) const {
    return {kUpdate,
            {report.squared_norms},
            {static_cast<double>(report.stage), static_cast<double>(report.shard), static_cast<double>(report.window),
             report.norm},
            {}};
  }
  Message operator()(const HeldReport& report) const { return {kHeld, {}, {static_cast<double>(report.admitted)}, {}}; }
  Message operator()(const FinalReport& report) const { return {kFinal, pack(report), {}, {}}; }
};

}  // namespace

Message to_message(const Report& report) {
  return std::visit(ToMessage{}, report);
}

Report to_report(const Message& message) {
  const auto& values = message.values;
  const auto& tensors = message.tensors;
  switch (message.number) {
    case kLoss:
      return LossReport{static_cast<int64_t>(values.at(0)), tensors.at(0)};
    case kUpdate:
      return UpdateReport{static_cast<int>(values.at(0)), static_cast<int>(values.at(1)),
                          static_cast<int64_t>(values.at(2)), tensors.at(0), values.at(3)};
    case kHeld:
      return HeldReport{static_cast<int64_t>(values.at(0))};
    default:
      return unpack(tensors);
  }
}

Message hold_message() {
  return {};
}

Message limit_message(int64_t limit) {
  return {0, {}, {static_cast<double>(limit)}, {}};
}

std::optional<int64_t> to_limit(const Message& message) {
  if (message.values.empty()) return std::nullopt;
  return static_cast<int64_t>(message.values[0]);
}

}  // namespace gyre
