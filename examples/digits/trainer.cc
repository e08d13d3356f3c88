// SPDX-License-Identifier: Apache-2.0
// One trainer of the demo: reads its share of a job, trains, logs every trained row, and commits
// its state every few steps. If it is killed and started again with the same arguments, it
// continues from the last state that it wrote.
//
// The log, one record a line, is check.py's only source:
//   batch PASS NUMBER…   these rows of that pass were trained on
//   mark ROWS            a state after the first ROWS rows of this log was written
//   restored ROWS        started again; the history is the first ROWS rows
//   end                  the last pass has ended
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "examples/digits/pipeline.h"
#include "examples/digits/softmax.h"
#include "penstock/penstock.h"

namespace digits {
namespace {

namespace ps = penstock;

struct Options {
  std::string service;
  std::string files;
  std::string job = "digits";
  std::string log;
  std::string checkpoint;
  std::string protocol;
  std::vector<std::string> fallback;
  int64_t epochs = 10;
  int64_t batch = 16;
  int64_t commit_every = 10;  // steps
  uint64_t seed = 1;
  int step_ms = 4;  // as if the model were larger
  double rate = 0.4;
};

// The state from which a restarted trainer continues.
struct Checkpoint {
  int64_t rows = 0;  // of the log
  Softmax::Weights weights{};
  ps::State state;
};

absl::Status Write(const Checkpoint& checkpoint, const std::string& path) {
  const std::string temporary = path + ".new";
  {
    std::ofstream out(temporary, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&checkpoint.rows), sizeof checkpoint.rows);
    out.write(reinterpret_cast<const char*>(checkpoint.weights.data()), sizeof checkpoint.weights);
    out << checkpoint.state.bytes;
    if (!out.flush()) return absl::ResourceExhaustedError(absl::StrCat("cannot write ", temporary));
  }
  std::error_code error;
  std::filesystem::rename(temporary, path, error);
  return error
             ? absl::InternalError(absl::StrCat("cannot rename ", temporary, ": ", error.message()))
             : absl::OkStatus();
}

std::optional<Checkpoint> Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  Checkpoint checkpoint;
  in.read(reinterpret_cast<char*>(&checkpoint.rows), sizeof checkpoint.rows);
  in.read(reinterpret_cast<char*>(checkpoint.weights.data()), sizeof checkpoint.weights);
  if (!in) return std::nullopt;
  checkpoint.state.bytes.assign(std::istreambuf_iterator<char>(in), {});
  return checkpoint;
}

// Appends each line with a single write, so that kill -9 cannot leave a part of a line.
class Log {
 public:
  explicit Log(const std::string& path)
      : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644)) {}
  ~Log() { ::close(fd_); }
  absl::Status Line(std::string line) {
    line += '\n';
    if (::write(fd_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      return absl::ErrnoToStatus(errno, "writing the trainer's log");
    return absl::OkStatus();
  }

 private:
  int fd_;
};

class Trainer {
 public:
  explicit Trainer(Options options) : options_(std::move(options)), log_(options_.log) {}

  absl::Status Run() {
    ps::Dataset data = Rows(options_.files, options_.seed)
                           .Shuffle(256, {.seed = options_.seed})
                           .Batch(options_.batch)
                           .Distribute({.processing_mode = ps::ShardingPolicy::kDynamic,
                                        .service = options_.service,
                                        .job_name = options_.job,
                                        .max_outstanding_requests = 8,
                                        .data_transfer_protocol = options_.protocol,
                                        .fallback = options_.fallback,
                                        .ack_mode = ps::AckMode::kOnCommit})
                           .Repeat(options_.epochs);
    PENSTOCK_ASSIGN_OR_RETURN(ps::Iterator it, data.MakeIterator());
    if (std::optional<Checkpoint> last = Read(options_.checkpoint)) {
      PENSTOCK_RETURN_IF_ERROR(it.Restore(last->state));
      model_.weights = last->weights;
      rows_ = last->rows;
      PENSTOCK_RETURN_IF_ERROR(log_.Line(absl::StrCat("restored ", rows_)));
    } else if (std::filesystem::exists(options_.log) &&
               std::filesystem::file_size(options_.log) > 0) {
      PENSTOCK_RETURN_IF_ERROR(log_.Line("restored 0"));  // killed before the first state
    }
    for (int64_t step = 1;; ++step) {
      PENSTOCK_ASSIGN_OR_RETURN(std::optional<ps::Element> batch, it.Next());
      if (!batch) break;
      PENSTOCK_RETURN_IF_ERROR(Learn(*batch));
      if (step % options_.commit_every == 0) PENSTOCK_RETURN_IF_ERROR(Commit(it));
    }
    PENSTOCK_RETURN_IF_ERROR(Commit(it));
    return log_.Line("end");
  }

 private:
  absl::Status Learn(const ps::Element& batch) {
    const auto labels = batch["label"].data<int64_t>();
    const auto numbers = batch["number"].data<int64_t>();
    // A partial batch weighs less, so that a single row cannot change the model much.
    const double share = static_cast<double>(labels.size()) / static_cast<double>(options_.batch);
    const float loss = model_.Step(batch["image"].data<float>(), labels,
                                   static_cast<float>(options_.rate * share));
    std::this_thread::sleep_for(std::chrono::milliseconds(options_.step_ms));
    std::string line = absl::StrCat("batch ", batch.identity().iteration.value());
    for (int64_t number : numbers) absl::StrAppend(&line, " ", number);
    PENSTOCK_RETURN_IF_ERROR(log_.Line(std::move(line)));
    rows_ += static_cast<int64_t>(numbers.size());
    std::printf("%lld %.4f\n", static_cast<long long>(rows_), loss);
    std::fflush(stdout);
    return absl::OkStatus();
  }

  absl::Status Commit(ps::Iterator& it) {
    PENSTOCK_ASSIGN_OR_RETURN(ps::State state, it.Save());
    PENSTOCK_RETURN_IF_ERROR(Write({rows_, model_.weights, state}, options_.checkpoint));
    PENSTOCK_RETURN_IF_ERROR(log_.Line(absl::StrCat("mark ", rows_)));
    return it.Commit(state);
  }

  Options options_;
  Log log_;
  Softmax model_;
  int64_t rows_ = 0;
};

}  // namespace
}  // namespace digits

int main(int argc, char** argv) {
  digits::Options options;
  CLI::App app("A trainer of the digits demo");
  app.add_option("--service", options.service, "the dispatcher, grpc://host:port")->required();
  app.add_option("--files", options.files, "pattern of the training shards")->required();
  app.add_option("--job", options.job, "name of the shared job");
  app.add_option("--log", options.log, "file to which every trained row is appended")->required();
  app.add_option("--checkpoint", options.checkpoint, "file of the weights and the reading state")
      ->required();
  app.add_option("--protocol", options.protocol, "data_transfer_protocol");
  app.add_option("--fallback", options.fallback,
                 "protocols to use if --protocol is not possible, separated by commas")
      ->delimiter(',');
  app.add_option("--epochs", options.epochs, "passes over the data");
  app.add_option("--batch", options.batch, "rows per step");
  app.add_option("--commit-every", options.commit_every, "steps between committed states");
  app.add_option("--seed", options.seed, "seed of the file order and the shuffle");
  app.add_option("--step-ms", options.step_ms,
                 "milliseconds that each step waits in addition to its computation");
  CLI11_PARSE(app, argc, argv);
  if (absl::Status status = digits::Trainer(options).Run(); !status.ok()) {
    std::cerr << "trainer: " << status << '\n';
    return 1;
  }
  return 0;
}
