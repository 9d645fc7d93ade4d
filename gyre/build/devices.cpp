#include "gyre/build/devices.h"

#include <fmt/format.h>

#include <algorithm>

#include "gyre/core/error.h"
#include "gyre/tensors/device.h"
#include "gyre/tensors/device_memory.h"

namespace gyre {
namespace {

// Consecutive numbers.
struct Share {
  int first = 0, count = 0;
};

// What each of `takers` gets of `count` things: as many of them as there are for it, or one that others have too.
Share share_of(int taker, int takers, int count) {
  const auto cut = [&](int at) { return static_cast<int>(int64_t{at} * count / takers); };
  return {cut(taker), std::max(1, cut(taker + 1) - cut(taker))};
}

}  // namespace

at::Device device_of_setting(const std::string& setting, const std::string& name) {
  try {
    const at::Device device = device_named(name);
    find_device(device);
    return device;
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}; gyre info lists those that are there", setting, error.what()));
  }
}

at::Device run_device(const Config& config) {
  return device_of_setting("[pipeline] device", config.pipeline.device);
}

bool computes_on_host(const Config& config) {
  return !has_streams(run_device(config));
}

MemoryLimit device_limit(const Config& config, int workers) {
  const auto memory = device_memory(run_device(config));
  if (!memory) return {};
  const double all = static_cast<double>(workers) * static_cast<double>(memory->total);
  const std::string devices = workers == 1 ? "its device has" : fmt::format("{} such devices have", workers);
  return {all, devices + " {} of memory"};
}

std::vector<at::Device> worker_devices(const Config& config, int workers, WorkerRange here, HostProcess process) {
  const at::Device device = run_device(config);
  if (!has_streams(device)) return {};
  std::vector<at::Device> devices(static_cast<size_t>(workers), find_device(device));
  if (device.has_index()) return devices;
  const Share of_process = share_of(process.number, process.count, device_count(device.type()));
  const int end = std::min(here.end, workers), own = end - here.begin;
  for (int worker = here.begin; worker < end; ++worker) {
    // With more devices than workers, the first devices have one each.
    const int number = share_of(worker - here.begin, own, std::min(of_process.count, own)).first;
    devices[static_cast<size_t>(worker)] =
        at::Device(device.type(), static_cast<c10::DeviceIndex>(of_process.first + number));
  }
  return devices;
}

}  // namespace gyre
