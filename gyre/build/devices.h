// Which device each worker computes on, by [pipeline] device.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "gyre/config/config.h"
#include "gyre/core/memory_limit.h"
#include "gyre/runtime/pipeline.h"

namespace gyre {

// One of the processes of a run on the same host, which share its devices.
struct HostProcess {
  int number = 0, count = 1;
};

// The device that `name` names: without a number if it names all of a type. Throws InputError, with the setting that
// the name is of, if it is not there.
at::Device device_of_setting(const std::string& setting, const std::string& name);
// The device of [pipeline] device.
at::Device run_device(const Config& config);

// Whether that is the CPU.
bool computes_on_host(const Config& config);

// What the devices of `workers` workers may hold together: at most as much as if each had one. No limit where it is
// not known.
MemoryLimit device_limit(const Config& config, int workers);

// [worker]; empty if all compute on the CPU. "cuda:1" is the device of all workers. "cuda" is all devices of the host:
// each process has its share of them, or one if there are fewer devices than processes, and its workers `here` are
// shared out over these, neighbours together. What is given for the workers of other processes does not matter. Throws
// InputError as run_device() does.
std::vector<at::Device> worker_devices(const Config& config, int workers, WorkerRange here, HostProcess process);

}  // namespace gyre
