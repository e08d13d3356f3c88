// SPDX-License-Identifier: Apache-2.0
// dataset → worker → slot → client over shm: how many mutexes each side locks for an element,
// counted by functions that replace pthread's. The worker is a separate process. Locks of shared
// libraries are not counted.
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "bench/serving_self.h"
#include "penstock/dataset.h"
#include "penstock/distribute.h"
#include "penstock/server.h"

namespace {

struct Taken {
  std::atomic<int64_t> by_worker{0};
  std::atomic<int64_t> by_trainer{0};
};

// This process's own counters, used while the shared ones are not mapped.
Taken own;
std::atomic<std::atomic<int64_t>*> counter{&own.by_trainer};

template <class Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {
int pthread_mutex_lock(pthread_mutex_t* mutex) {
  static auto* const next = Next<decltype(pthread_mutex_lock)>("pthread_mutex_lock");
  counter.load(std::memory_order_relaxed)->fetch_add(1, std::memory_order_relaxed);
  return next(mutex);
}
int pthread_mutex_trylock(pthread_mutex_t* mutex) {
  static auto* const next = Next<decltype(pthread_mutex_trylock)>("pthread_mutex_trylock");
  const int error = next(mutex);
  if (error == 0) counter.load(std::memory_order_relaxed)->fetch_add(1, std::memory_order_relaxed);
  return error;
}
}

namespace penstock::bench {
namespace {

// Maps the counters of the benchmark with this process id.
Taken* Share(pid_t benchmark) {
  const std::string name = "/penstock-locks-" + std::to_string(benchmark);
  const int fd = ::shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ::ftruncate(fd, sizeof(Taken)) != 0) std::abort();
  void* memory = ::mmap(nullptr, sizeof(Taken), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (memory == MAP_FAILED) std::abort();
  if (::getpid() != benchmark) ::shm_unlink(name.c_str());
  return static_cast<Taken*>(memory);
}

int Serve() {
  counter = &Share(::getppid())->by_worker;
  auto dispatcher = DispatchServer::Start();
  if (!dispatcher.ok()) return 1;
  WorkerConfig config;
  config.dispatcher_address = (*dispatcher)->target();
  auto worker = WorkerServer::Start(std::move(config));
  if (!worker.ok()) return 1;
  std::printf("%s\n", (*dispatcher)->target().c_str());
  std::fflush(stdout);
  ::pause();
  return 0;
}

void TakenForAnElement(benchmark::State& state) {
  Taken* const taken = Share(::getpid());
  auto service = ServingSelf::Start();
  if (!service.ok()) return state.SkipWithError("no service");
  counter = &taken->by_trainer;
  DistributeOptions options;
  options.service = (*service)->target();
  options.data_transfer_protocol = "shm";
  auto it = Dataset::Range(int64_t{1} << 40)
                .Batch(state.range(0) / static_cast<int64_t>(sizeof(int64_t)))
                .Distribute(options)
                .MakeIterator();
  for (int i = 0; i < 2000; ++i)
    if (!it.ok() || !it->Next().ok()) return state.SkipWithError("nothing to read");
  const int64_t worker = taken->by_worker, trainer = taken->by_trainer;
  for (auto _ : state)
    if (!it->Next().ok()) return state.SkipWithError("no element");
  const auto elements = static_cast<double>(state.iterations());
  state.counters["worker"] = static_cast<double>(taken->by_worker - worker) / elements;
  state.counters["trainer"] = static_cast<double>(taken->by_trainer - trainer) / elements;
  it = absl::CancelledError("over");
  counter = &own.by_trainer;
  ::munmap(taken, sizeof(Taken));
}
BENCHMARK(TakenForAnElement)->Arg(256 << 10)->Arg(1 << 20);

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "serve") return penstock::bench::Serve();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
