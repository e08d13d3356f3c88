// SPDX-License-Identifier: Apache-2.0
// Workloads: their datasets, the checks of their elements, and their limits. A workload is one file
// in workloads/ and one line in workload.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/hosts.h"
#include "bench/side.h"
#include "bench/source.h"
#include "penstock/dataset.h"

namespace penstock::bench {

// One case, as its processes get it.
struct Setup {
  std::string workload;
  std::string protocol;
  int64_t element_bytes = 0;  // at the reader
  int workers = 1;
  int consumers = 1;
  int consumer = 0;          // index of the reader among them
  bool coordinated = false;  // readers read in rounds
  std::string last;          // last node before Distribute in this case; empty: no such node
  std::string device;        // "GPU:0": trainers get elements there; empty: in host memory
  double window_s = 2;
  int64_t source_bytes = kColdBytes;
  bool compress = true;  // links may compress (LinkCompression::kAuto)
  std::string service;   // "grpc://…"; empty: the reader's process also holds the servers
  std::string scratch;   // folder for files of this case, while it runs
  Hosts hosts;           // not sent to readers, which run here
  // NAME=VALUE: environment variables of trainers and workers. Not sent to readers either.
  std::vector<std::string> trainer_variables, worker_variables;
};

// Checks the elements that a trainer gets.
class Reader {
 public:
  virtual ~Reader() = default;
  // Reads the element and returns its size in bytes. DataLoss if it is not the expected one.
  virtual absl::StatusOr<int64_t> Take(const Element& element) = 0;
  // Called when the dataset has ended and is read again from its start. The default: an error.
  virtual absl::Status EndOfPass() {
    return absl::DataLossError("the dataset ended, although it is endless");
  }
};

// The kind of rate that a ratio compares.
enum class Basis : uint8_t {
  kElementsPerSecond,
  kElementsPerWorkerCpuSecond,
  kElementsPerCpuSecond,  // of all processes
};

// The number of processes of each kind, and other differences between cases of a workload.
struct Shape {
  int workers = 1;
  int consumers = 1;
  bool coordinated = false;
  std::string last;
};

class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view question() const = 0;  // one line
  // Returns the sizes of an element; more than one only if --size may change them.
  virtual std::vector<int64_t> sizes() const = 0;
  virtual bool sized() const { return true; }  // whether --size sets it
  virtual std::vector<Shape> shapes() const { return {{}}; }
  virtual Basis basis() const { return Basis::kElementsPerSecond; }
  // Returns whether only one Next() in 16 is timed, because reading the clock takes longer than
  // getting an element.
  virtual bool tiny() const { return false; }
  // Returns how long a trainer computes on each element before it asks for the next, in seconds.
  virtual double step_s() const { return 0; }
  // Returns this time for one element, if it depends on the element.
  virtual double StepOf(const Element& /*element*/) const { return step_s(); }
  // Returns whether trainers wait for each other after each step, like trainers of one model.
  virtual bool in_step() const { return false; }
  // Returns whether all trainers read the same elements through a shared cache. The rate is then
  // that of one trainer: an element counts once however many trainers read it.
  virtual bool cached() const { return false; }
  virtual ShardingPolicy mode() const { return ShardingPolicy::kOff; }
  virtual int64_t max_outstanding_requests() const { return 8; }

  // Returns whether workers read files that Prepare() wrote, and so must run here.
  virtual bool has_files() const { return false; }
  // Writes the workers' files into setup.scratch.
  virtual absl::Status Prepare(const Setup& /*setup*/) const { return absl::OkStatus(); }
  // Returns the dataset before Distribute.
  virtual Dataset MakeDataset(const Setup& setup) const = 0;
  virtual std::unique_ptr<Reader> MakeReader(const Setup& setup) const = 0;
  virtual absl::StatusOr<std::unique_ptr<Side>> MakeLimit(const Setup& setup) const = 0;
};

const std::vector<const Workload*>& Workloads();
// Returns the workload of this name, ignoring case. NotFound, listing the names, if there is none.
absl::StatusOr<const Workload*> FindWorkload(std::string_view name);

// Each is in its own file.
const Workload& T1();
const Workload& T1Zero();
const Workload& T1OneAtATime();
const Workload& T1Compressible();
const Workload& T2();
const Workload& Range();
const Workload& I1();
const Workload& I1Dct();
const Workload& I1Shuffle();
const Workload& I2();
const Workload& H1();
const Workload& V1();
const Workload& C1();
const Workload& L1();
const Workload& L1Zero();
const Workload& R1();
const Workload& S1();
const Workload& L2();
const Workload& M1();
const Workload& Coordinated();
const Workload& S1Cached();
const Workload& S1InPlace();

}  // namespace penstock::bench
