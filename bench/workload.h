// SPDX-License-Identifier: Apache-2.0
// What is read, how it is checked, and what it is compared with. A workload is
// one file in workloads/ and one line in workload.cc.
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

// One case, as its processes are told it.
struct Setup {
  std::string workload;
  std::string protocol;
  int64_t element_bytes = 0;  // at the reader
  int workers = 1;
  int consumers = 1;
  int consumer = 0;          // of them, which a reader is
  bool coordinated = false;  // readers read in rounds
  std::string last;    // what the workload puts before Distribute in this case; empty: nothing
  std::string device;  // "GPU:0": trainers get elements there; empty: in host memory
  double window_s = 2;
  int64_t source_bytes = kColdBytes;
  bool compress = true;  // links may (LinkCompression::kAuto)
  std::string service;   // "grpc://…"; empty: the reader's process holds the servers too
  std::string scratch;   // folder for files of this case, there while it runs
  Hosts hosts;           // not told to readers, which run here
  // NAME=VALUE: what trainers and workers find in their environment. Not told either.
  std::vector<std::string> trainer_variables, worker_variables;
};

// Checks elements as a trainer gets them.
class Reader {
 public:
  virtual ~Reader() = default;
  // Reads the element; its bytes. DataLoss if it is not what was due.
  virtual absl::StatusOr<int64_t> Take(const Element& element) = 0;
  // The dataset has ended and is read again from its start. By default it must not end.
  virtual absl::Status EndOfPass() {
    return absl::DataLossError("the dataset ended, which has no end");
  }
};

// What a ratio is of.
enum class Basis : uint8_t {
  kElementsPerSecond,
  kElementsPerWorkerCpuSecond,
  kElementsPerCpuSecond,  // of all processes
};

// How many processes of each kind, and what tells a case from another of the workload.
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
  // Of one element; more than one only if --size may change them.
  virtual std::vector<int64_t> sizes() const = 0;
  virtual bool sized() const { return true; }  // whether --size means it
  virtual std::vector<Shape> shapes() const { return {{}}; }
  virtual Basis basis() const { return Basis::kElementsPerSecond; }
  // Whether each next call is timed, or one in 16: for elements that take less
  // than reading the clock.
  virtual bool tiny() const { return false; }
  // What a trainer does with each element before it asks for the next, in seconds.
  virtual double step_s() const { return 0; }
  // The same where it depends on the element.
  virtual double StepOf(const Element& /*element*/) const { return step_s(); }
  // Whether trainers wait for each other behind each step, as those that train one model.
  virtual bool in_step() const { return false; }
  // Whether all trainers read the same elements, through a cache that they share. Then
  // the rate is that of one of them: an element counts once however many read it.
  virtual bool cached() const { return false; }
  virtual ShardingPolicy mode() const { return ShardingPolicy::kOff; }
  virtual int64_t max_outstanding_requests() const { return 8; }

  // Whether workers read files that Prepare() wrote, and so have to run here.
  virtual bool has_files() const { return false; }
  // Writes what the workers will read into setup.scratch.
  virtual absl::Status Prepare(const Setup& /*setup*/) const { return absl::OkStatus(); }
  // What stands before Distribute.
  virtual Dataset MakeDataset(const Setup& setup) const = 0;
  virtual std::unique_ptr<Reader> MakeReader(const Setup& setup) const = 0;
  virtual absl::StatusOr<std::unique_ptr<Side>> MakeLimit(const Setup& setup) const = 0;
};

const std::vector<const Workload*>& Workloads();
// NotFound, listing them, if none is called so; upper and lower case are one.
absl::StatusOr<const Workload*> FindWorkload(std::string_view name);

// Each in its file.
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
