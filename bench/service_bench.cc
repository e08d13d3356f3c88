// SPDX-License-Identifier: Apache-2.0
// End to end, Dataset → Next(): T1 (opaque buffers from a cold source, every
// byte summed at the reader) and Range(10⁷) scalars, each beside its limit.
//
//   service_bench t1 --protocol grpc --bytes 1048576 --pairs 7 --seconds 2
//   service_bench range --count 10000000
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/limits.h"
#include "bench/measure.h"
#include "bench/source.h"
#include "penstock/penstock.h"

namespace bench {
namespace {

namespace ps = penstock;

// The worker's part of T1: element `x` is x[0] bytes, stamped with x[1].
absl::Status CopyFromSource(ps::CallContext& call) {
  static ColdSource* source = new ColdSource();
  const int64_t bytes = call.inputs()[0].scalar<int64_t>();
  const int64_t number = call.inputs()[1].scalar<int64_t>();
  ASSIGN_OR_RETURN(absl::Span<std::byte> slot, call.Output(0, {bytes}));
  source->Fill({slot.data(), slot.size()}, static_cast<uint64_t>(number));
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("bench.copy_from_source", 1, ps::Dense(ps::kUInt8, {ps::kUnknownDim}),
                      CopyFromSource);

[[noreturn]] void Fail(const absl::Status& status) {
  std::fprintf(stderr, "service_bench: %s\n", status.ToString().c_str());
  std::exit(1);
}

// Dispatcher and worker, in one process.
struct Servers {
  std::unique_ptr<ps::DispatchServer> dispatcher;
  std::unique_ptr<ps::WorkerServer> worker;

  static Servers Start() {
    auto dispatcher = ps::DispatchServer::Start();
    if (!dispatcher.ok()) Fail(dispatcher.status());
    auto worker = ps::WorkerServer::Start({.dispatcher_address = (*dispatcher)->target()});
    if (!worker.ok()) Fail(worker.status());
    return {*std::move(dispatcher), *std::move(worker)};
  }
};

// Servers in this process, or in a child: this program again, as `serve`.
class Service {
 public:
  explicit Service(bool own_process) {
    if (!own_process) {
      servers_ = Servers::Start();
      target_ = servers_.dispatcher->target();
      return;
    }
    int out[2];
    if (::pipe(out) != 0) Fail(absl::ErrnoToStatus(errno, "pipe"));
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(out[1], STDOUT_FILENO);
      ::execl("/proc/self/exe", "service_bench", "serve", nullptr);
      ::_exit(127);
    }
    ::close(out[1]);
    for (char c; ::read(out[0], &c, 1) == 1 && c != '\n';) target_ += c;
    ::close(out[0]);
  }
  ~Service() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
  }
  const std::string& target() const { return target_; }
  // Whose CPU time is ours.
  std::vector<pid_t> processes() const {
    return child_ > 0 ? std::vector<pid_t>{::getpid(), child_} : std::vector<pid_t>{::getpid()};
  }

 private:
  Servers servers_;
  pid_t child_ = 0;
  std::string target_;
};

class T1Reader {
 public:
  T1Reader(const Service& service, const std::string& protocol, int64_t bytes) {
    ps::Dataset data =
        ps::Dataset::Range(int64_t{1} << 40)
            .Map(
                [bytes](auto x) {
                  return ps::Call("bench.copy_from_source", ps::Tuple({ps::Expr(bytes), x}));
                },
                {.num_parallel_calls = 1})
            .Distribute({.service = service.target(),
                         .max_outstanding_requests = 8,
                         .data_transfer_protocol = protocol});
    auto it = data.MakeIterator();
    if (!it.ok()) Fail(it.status());
    it_.emplace(*std::move(it));
    Read(0.3);  // warm: slots allocated, window full
  }

  // Bytes read and summed in about `seconds`.
  double Read(double seconds) {
    const double end = Now() + seconds;
    double read = 0;
    while (Now() < end) {
      absl::StatusOr<std::optional<ps::Element>> element = it_->Next();
      if (!element.ok()) Fail(element.status());
      absl::Span<const uint8_t> values = (*element)->tensor(0).data<uint8_t>();
      std::span<const std::byte> bytes{reinterpret_cast<const std::byte*>(values.data()),
                                       values.size()};
      sum_ += SumOf(bytes);
      if (!IsStamped(bytes, number_++)) Fail(absl::DataLossError("an element has wrong contents"));
      read += static_cast<double>(bytes.size());
    }
    return read;
  }

 private:
  std::optional<ps::Iterator> it_;
  uint64_t number_ = 0;
  uint64_t sum_ = 0;
};

struct Options {
  std::string protocol = "grpc";
  std::string congestion;  // of the socket limit
  std::vector<int64_t> bytes = {65536, 1 << 20, 9633792};
  int pairs = 7;
  double seconds = 2;
  int64_t count = 10'000'000;
  std::string record;
};

void RunT1(const Options& options, std::FILE* record) {
  for (int64_t bytes : options.bytes) {
    const bool local = options.protocol == "local";
    const std::string congestion =
        options.congestion.empty() && options.protocol == "tcp" ? "cubic" : options.congestion;
    const bool in_memory = local || options.protocol == "shm";  // no socket to compare with
    std::optional<SocketLimit> socket;
    std::optional<FillLimit> fill;
    if (in_memory)
      fill.emplace(bytes);
    else
      socket.emplace(bytes, congestion);
    Service service(!local);
    T1Reader reader(service, options.protocol, bytes);
    std::vector<Pair> pairs;
    for (int i = 0; i < options.pairs; ++i) {
      Pair pair;
      pair.ours =
          Measure(service.processes(), options.seconds, [&](double s) { return reader.Read(s); });
      std::vector<pid_t> limit_processes = {::getpid()};
      if (socket) limit_processes.push_back(socket->child());
      pair.limit = Measure(limit_processes, options.seconds,
                           [&](double s) { return socket ? socket->Read(s) : fill->Read(s); });
      pairs.push_back(pair);
    }
    Report("T1 " + options.protocol + " " + std::to_string(bytes), pairs, 1e9, "GB", record);
  }
}

// Range(count) scalars; the limit is the bar of 10⁶ elements/s, not a machine's.
void RunRange(const Options& options, std::FILE* record) {
  Service service(/*own_process=*/true);
  for (int run = 0; run < 3; ++run) {
    Window window = Measure(service.processes(), 0, [&](double) {
      ps::Dataset data = ps::Dataset::Range(options.count)
                             .Distribute({.processing_mode = ps::ShardingPolicy::kDynamic,
                                          .service = service.target(),
                                          .data_transfer_protocol = options.protocol});
      auto it = data.MakeIterator();
      if (!it.ok()) Fail(it.status());
      double elements = 0, sum = 0;
      while (true) {
        auto element = it->Next();
        if (!element.ok()) Fail(element.status());
        if (!element->has_value()) break;
        sum += static_cast<double>((*element)->tensor(0).scalar<int64_t>());
        ++elements;
      }
      const double n = static_cast<double>(options.count);
      if (elements != n || sum != n * (n - 1) / 2) Fail(absl::DataLossError("numbers are missing"));
      return elements;
    });
    std::printf("Range(%lld) %s  %.3f M elements/s  CPU us/element %.3f  foreign cores %.2f\n",
                (long long)options.count, options.protocol.c_str(), window.rate() / 1e6,
                window.cpu_per_amount() * 1e6, window.foreign_cores);
    if (record != nullptr)
      std::fprintf(
          record,
          "{\"v\": 1, \"system\": \"penstock\", \"workload\": \"range\", \"elements_per_s\": %.6g, "
          "\"cpu_us_per_element\": %.4g, \"foreign_cores\": %.3f}\n",
          window.rate(), window.cpu_per_amount() * 1e6, window.foreign_cores);
  }
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::Options options;
  CLI::App app("Penstock end to end, each figure beside its limit");
  app.require_subcommand(1);
  auto* t1 = app.add_subcommand("t1", "opaque buffers from a cold source, summed at the reader");
  t1->add_option("--bytes", options.bytes, "of one element, several allowed");
  t1->add_option("--congestion", options.congestion,
                 "of the socket limit; by default that of the sockets it stands beside");
  t1->add_option("--pairs", options.pairs, "windows of ours and of the limit, in turn");
  t1->add_option("--seconds", options.seconds, "length of a window");
  auto* range = app.add_subcommand("range", "int64 scalars through the service");
  range->add_option("--count", options.count, "how many");
  for (CLI::App* sub : {t1, range}) {
    sub->add_option("--protocol", options.protocol, "of the transfer: local, shm, tcp, grpc, …");
    sub->add_option("--record", options.record, "append JSON objects to this file");
  }
  auto* serve = app.add_subcommand("serve", "a dispatcher and a worker, until killed")->group("");
  CLI11_PARSE(app, argc, argv);
  if (serve->parsed()) {
    bench::Servers servers = bench::Servers::Start();
    std::printf("%s\n", servers.dispatcher->target().c_str());
    std::fflush(stdout);
    servers.dispatcher->Join();
  }
  std::FILE* record = options.record.empty() ? nullptr : std::fopen(options.record.c_str(), "a");
  if (t1->parsed())
    bench::RunT1(options, record);
  else
    bench::RunRange(options, record);
  if (record != nullptr) std::fclose(record);
  return 0;
}
