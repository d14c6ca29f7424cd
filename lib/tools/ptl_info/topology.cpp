#include "lib/tools/ptl_info/topology.h"

#include <dirent.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "engine/door/inspection.h"

namespace portofu::tools {
namespace {

/// "L3 cache 1, NUMA domain 0", of what is known.
std::string shared_text(const Core& core) {
  std::string text;
  if (core.l3 >= 0) text += "L3 cache " + std::to_string(core.l3);
  if (core.numa >= 0) text += (text.empty() ? "" : ", ") + std::string("NUMA domain ") + std::to_string(core.numa);
  return text;
}

}  // namespace

std::vector<ThreadPlace> threads_of(std::uint32_t os_pid) {
  const std::string tasks = "/proc/" + std::to_string(os_pid) + "/task";
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(tasks.c_str()), closedir);
  std::vector<ThreadPlace> threads;
  if (directory == nullptr) return threads;
  while (const dirent* entry = readdir(directory.get())) {
    const int number = std::atoi(entry->d_name);
    if (number == 0) continue;
    SystemTask task = look_at_task(tasks + '/' + entry->d_name);
    threads.push_back({number, std::move(task.name), task.cpu});
  }
  std::ranges::sort(threads, {}, &ThreadPlace::number);
  return threads;
}

std::string machine_text(const Machine& machine) {
  std::string text;
  for (std::size_t first = 0, last = 0; first < machine.cores.size(); first = last) {
    const Core& core = machine.cores[first];
    std::vector<int> cpus;
    for (; last < machine.cores.size() && machine.cores[last].l3 == core.l3 && machine.cores[last].numa == core.numa;
         ++last)
      cpus.insert(cpus.end(), machine.cores[last].cpus.begin(), machine.cores[last].cpus.end());
    std::ranges::sort(cpus);
    const std::string shared = shared_text(core);
    text += "    cores " + std::to_string(first) + (last - first > 1 ? "-" + std::to_string(last - 1) : "") +
            ", CPUs " + cpu_list_text(cpus) + (shared.empty() ? "" : ": " + shared) + '\n';
  }
  return text;
}

std::string threads_text(const Machine& machine, const std::vector<ThreadPlace>& threads) {
  std::string text;
  for (const ThreadPlace& thread : threads) {
    text +=
        "    thread " + std::to_string(thread.number) + " (" + thread.name + ") on CPU " + std::to_string(thread.cpu);
    const auto core = std::ranges::find_if(
        machine.cores, [&](const Core& one) { return std::ranges::find(one.cpus, thread.cpu) != one.cpus.end(); });
    if (core != machine.cores.end()) {
      const std::string shared = shared_text(*core);
      text += ": core " + std::to_string(core - machine.cores.begin()) + (shared.empty() ? "" : ", " + shared);
    }
    text += '\n';
  }
  return text;
}

}  // namespace portofu::tools
