// SPDX-License-Identifier: Apache-2.0
// A data-parallel trainer: each replica learns from its part of every global batch, and all take
// the same step. All replicas are in this process (REPLICAS), or each process of a launch has one
// (torchrun's variables RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT; LOCAL_RANK is the number of the
// process's GPU). The same code runs on CPUs and GPUs.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lenet.h"
#include "on_gpu.h"
#include "penstock/penstock.h"
#include "pipeline.h"

namespace {

namespace ps = penstock;
using lenet::LeNet;

constexpr double kRate = 0.004;  // falls to 0 over the epochs

struct Options {
  std::string files;
  std::string held_out;
  int replicas = 1;
  int epochs = 5;
  int batch = 8;  // of all replicas together
  bool gpu = false;
};

absl::StatusOr<ps::ReplicaGroup> Group(const Options& options) {
  const std::string kind = options.gpu ? "GPU:" : "CPU:";
  if (std::getenv("WORLD_SIZE") != nullptr) {
    const char* local = std::getenv("LOCAL_RANK");
    PENSTOCK_ASSIGN_OR_RETURN(
        const ps::ReplicaGroup group,
        ps::ReplicaGroup::FromEnvironment({absl::StrCat(kind, local == nullptr ? "0" : local)}));
    return group.Connect();
  }
  std::vector<std::string> devices;
  for (int i = 0; i < options.replicas; ++i) devices.push_back(absl::StrCat(kind, i));
  return ps::ReplicaGroup::Mirrored(devices);
}

// Returns the sums of one replica in a step: the gradient, then the loss and the number of rows.
std::vector<double> LearnHere(const LeNet& model, const ps::Element& batch) {
  std::vector<double> sums(LeNet::kWeights + 2);
  const auto images = batch["image"].data<float>();
  const auto labels = batch["label"].data<int64_t>();
  for (size_t row = 0; row < labels.size(); ++row) {
    sums[LeNet::kWeights] +=
        model.network().Learn(images.data() + row * lenet::kPixels, labels[row], 1, sums.data());
    sums[LeNet::kWeights + 1] += 1;
  }
  return sums;
}

absl::StatusOr<ps::PerReplica<std::vector<double>>> Learn(const ps::ReplicaGroup& group,
                                                          const ps::DistributedValues& values,
                                                          const LeNet& model) {
  if (values.is_on_device(0)) {
    return group.Run([&](const ps::DeviceElement& batch) { return LearnOnGpu(model, batch); },
                     values);
  }
  return group.Run([&](const ps::Element& batch) { return LearnHere(model, batch); }, values);
}

// Returns the mean loss of one pass.
absl::StatusOr<double> Train(const ps::ReplicaGroup& group, const ps::DistributedDataset& input,
                             double rate, LeNet& model) {
  double loss = 0;
  double rows = 0;
  for (absl::StatusOr<ps::DistributedValues>& values : input.Elements()) {
    PENSTOCK_RETURN_IF_ERROR(values.status());
    PENSTOCK_ASSIGN_OR_RETURN(const ps::PerReplica<std::vector<double>> parts,
                              Learn(group, *values, model));
    PENSTOCK_ASSIGN_OR_RETURN(std::vector<double> sums, group.Reduce(ps::ReduceOp::kSum, parts));
    loss += sums[LeNet::kWeights];
    rows += sums[LeNet::kWeights + 1];
    for (int i = 0; i < LeNet::kWeights; ++i) sums[i] /= sums[LeNet::kWeights + 1];
    model.Step(sums.data(), rate);
  }
  return loss / rows;
}

absl::StatusOr<double> Accuracy(const std::string& files, const LeNet& model) {
  int64_t right = 0;
  int64_t rows = 0;
  for (absl::StatusOr<ps::Element>& row : digits::Rows(files, 0).Elements()) {
    PENSTOCK_RETURN_IF_ERROR(row.status());
    const int said = model.network().Predict((*row)["image"].data<float>().data());
    right += said == (*row)["label"].scalar<int64_t>() ? 1 : 0;
    ++rows;
  }
  return static_cast<double>(right) / static_cast<double>(rows);
}

absl::Status Main(const Options& options) {
  PENSTOCK_ASSIGN_OR_RETURN(const ps::ReplicaGroup group, Group(options));
  ps::InputOptions input_options;
  input_options.seed = 3;  // so that groups of any size read the same batches
  input_options.auto_shard = ps::AutoShardPolicy::kData;
  PENSTOCK_ASSIGN_OR_RETURN(
      const ps::DistributedDataset input,
      ps::DistributeDataset(
          group, digits::Rows(options.files, 1).Shuffle(2048).Batch(options.batch), input_options));
  LeNet model(/*seed=*/5);
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    const double rate = kRate * (options.epochs - epoch) / options.epochs;
    PENSTOCK_ASSIGN_OR_RETURN(const double loss, Train(group, input, rate, model));
    if (group.process() == 0) std::printf("epoch %d loss %.6f\n", epoch, loss);
  }
  if (group.process() != 0) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(const double accuracy, Accuracy(options.held_out, model));
  std::printf("replicas %d accuracy %.4f\n", group.num_replicas_in_sync(), accuracy);
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const auto number = [&](int i, int& to) {
    return argc <= i || (absl::SimpleAtoi(argv[i], &to) && to > 0);
  };
  const std::string device = argc > 5 ? argv[5] : "cpu";
  if (argc < 3 || argc > 6 || !number(3, options.replicas) || !number(4, options.epochs) ||
      (device != "cpu" && device != "gpu")) {
    std::cerr << "usage: replicas_trainer TRAIN_PATTERN HELD_OUT_PATTERN [REPLICAS [EPOCHS "
                 "[cpu|gpu]]]\n";
    return 2;
  }
  options.gpu = device == "gpu";
  options.files = argv[1];
  options.held_out = argv[2];
  if (absl::Status status = Main(options); !status.ok()) {
    std::cerr << "replicas_trainer: " << status << '\n';
    return 1;
  }
  return 0;
}
