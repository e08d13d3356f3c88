// SPDX-License-Identifier: Apache-2.0
// A trainer that follows orders, one a line of its standard input, and answers each with one line:
//
// - open JOB COUNT WORDS LOG CHECKPOINT: "open", or "resumed" if CHECKPOINT is a state
// - all: reads to the end: "end"
// - next: reads one element and holds it: "element NUMBER", or "end"
// - read N: reads N elements: "read", or "end"
// - commit: writes a state to CHECKPOINT and commits it: "committed"
// - save FILE: writes a state to FILE, and moves the previous one to FILE.before: "saved"
// - keep: commits the state written last: "kept"
// - look: reads all held elements again: "same" or "changed"
// - drop: releases the held elements: "dropped"
// - close: ends the reading: "closed"
//
// A failed order is answered with "error CODE MESSAGE". Each element read is a line of LOG, written
// before the next is requested: its number, partition, placement, index and round, and the time of
// reading in microseconds since 1970. A line "restored N" means that only the first N elements
// before it count. "committed N AT" means that the dispatcher has answered a commit.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "include/status_macros.h"
#include "penstock/plugin.h"
#include "tools/soak/numbers.h"

namespace penstock::soak {
namespace {

struct Options {
  std::string service;
  std::string protocol = "auto";
  int64_t commit_every = 25;  // elements
  int64_t window = 16;
  int64_t compression = static_cast<int64_t>(LinkCompression::kAuto);
  int64_t consumer = 0;  // index in a coordinated read of `consumers`
  int64_t consumers = 0;
  int64_t group_size = 1;  // members of each consumer's group
  int64_t group_member = 0;
  std::string plugin;  // has source "numbers" and map "spread"
  std::string cache;   // "memory", or a folder for files; empty: no cache
  int64_t passes = 1;
  int64_t epochs = 1;    // all passes, repeated after Distribute
  int64_t prefetch = 0;  // elements ahead, after Distribute; 0: none
  int64_t shuffle_behind = 0;
  int64_t ends_at = -1;          // number that ends its worker; -1: none
  std::string mode = "dynamic";  // "dynamic", "off" or "data"
  bool filter = false;
  int64_t shuffle = 0;  // elements in the buffer; 0: no shuffle
  int64_t step_us = 0;
  int64_t timeout_s = 60;
  bool ordered = false;        // order = kDeterministic
  bool at_least_once = false;  // visitation = kAtLeastOnce
  bool keep_taken = false;     // ack_mode = kOnDelivery: no state is committed
};

absl::StatusOr<ShardingPolicy> ModeFrom(const std::string& name) {
  if (name == "dynamic") return ShardingPolicy::kDynamic;
  if (name == "off") return ShardingPolicy::kOff;
  if (name == "data") return ShardingPolicy::kData;
  return absl::InvalidArgumentError(
      absl::StrCat("unknown mode '", name, "'; use dynamic, off or data"));
}

class Trainer {
 public:
  explicit Trainer(Options options) : options_(std::move(options)) {}
  ~Trainer() { CloseLog(); }

  absl::StatusOr<std::string> Obey(const std::string& order) {
    std::istringstream words(order);
    std::string verb;
    words >> verb;
    if (verb == "open") return Open(words);
    if (verb == "read") return ReadSome(words);
    if (verb == "all") return ReadAll();
    if (verb == "next") return ReadOne();
    if (verb == "commit") return Commit();
    if (verb == "save") return SaveTo(words);
    if (verb == "keep") return KeepSaved();
    if (verb == "look") return Look();
    if (verb == "drop") return Drop();
    if (verb == "close") return Close();
    return absl::InvalidArgumentError(absl::StrCat("unknown order '", order, "'"));
  }

 private:
  DeliveryMode MakeDelivery() const {
    if (options_.ordered) {
      return DeterministicOrder{.consumer_index = options_.consumer,
                                .num_consumers = options_.consumers};
    }
    if (options_.consumers > 0) {
      return CoordinatedRounds{.consumer_index = options_.consumer,
                               .num_consumers = options_.consumers,
                               .group = {options_.group_size, options_.group_member}};
    }
    return FirstComeFirstServed{.visitation = options_.at_least_once ? Visitation::kAtLeastOnce
                                                                     : Visitation::kExactlyOnce};
  }

  absl::StatusOr<std::string> Open(std::istringstream& words) {
    std::string job;
    std::string log;
    int64_t count = 0;
    words >> job >> count >> words_ >> log >> checkpoint_;
    CloseLog();
    log_ = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    read_ = 0;
    ASSIGN_OR_RETURN(const ShardingPolicy mode, ModeFrom(options_.mode));
    DistributeOptions options{
        .processing_mode = mode,
        .service = options_.service,
        .job_name = job,
        .max_outstanding_requests = options_.window,
        .data_transfer_protocol = options_.protocol,
        .ack_mode = options_.keep_taken ? AckMode::kOnDelivery : AckMode::kOnCommit,
        .compression = static_cast<LinkCompression>(options_.compression),
        .timeout = absl::Seconds(options_.timeout_s)};
    if (options_.ordered) options.seed = 1;
    options.delivery = MakeDelivery();
    if (options_.consumers > 0) rounds_.open(log + ".rounds", std::ios::app);
    ASSIGN_OR_RETURN(iterator_, Behind(Passes(job, count).Distribute(options)).MakeIterator());
    std::ifstream in(checkpoint_, std::ios::binary);
    if (!(in >> read_)) {
      read_ = 0;
      RETURN_IF_ERROR(Log("restored 0"));
      return "open";
    }
    in.get();
    State state{.bytes = std::string(std::istreambuf_iterator<char>(in), {})};
    RETURN_IF_ERROR(iterator_->Restore(state));
    RETURN_IF_ERROR(Log(absl::StrCat("restored ", read_)));
    return "resumed";
  }

  // Returns a dataset with each number once for each pass.
  Dataset Passes(const std::string& job, int64_t count) const {
    Dataset data = Elements(count);
    if (options_.cache == "memory")
      data = data.Cache();
    else if (!options_.cache.empty())
      data = data.Cache(absl::StrCat(options_.cache, "/", job));
    if (options_.passes > 1) data = data.Repeat(options_.passes);
    return options_.shuffle > 0 ? data.Shuffle(options_.shuffle) : data;
  }

  Dataset Behind(Dataset data) const {
    if (options_.epochs > 1) data = data.Repeat(options_.epochs);
    if (options_.shuffle_behind > 0) data = data.Shuffle(options_.shuffle_behind);
    return options_.prefetch > 0 ? data.Prefetch(options_.prefetch) : data;
  }

  Dataset Elements(int64_t count) const {
    if (options_.ends_at >= 0) {
      return Numbers(count, words_).Map([this](auto element) {
        return Tuple(
            {Call("end_process_at", Tuple({element[0], Expr(options_.ends_at)})), element[1]});
      });
    }
    if (options_.filter) return Kept(Numbers(count, words_));
    if (options_.plugin.empty()) return Numbers(count, words_);
    return FromSource("numbers", {{"count", count}}).Map([this](auto number) {
      return Call("spread", Tuple({number, Expr(words_)}));
    });
  }

  // Returns the next element, checked and logged; an empty one at the end.
  absl::StatusOr<Element> Read() {
    ASSIGN_OR_RETURN(std::optional<Element> element, iterator_->Next());
    if (!element.has_value()) return Element();
    if (!IsWhole(*element, words_)) {
      return absl::DataLossError(absl::StrCat("element ", NumberOf(*element), " has wrong bytes"));
    }
    if (const StepToken token = StepTokenOf(*element); options_.consumers > 0) {
      rounds_ << token.round << ' ' << token.partition.value() << ' '
              << token.index / (options_.consumers * options_.group_size) << std::endl;
      if (token.pad) return *std::move(element);
    }
    if (options_.step_us > 0) absl::SleepFor(absl::Microseconds(options_.step_us));
    const Identity from = element->identity();
    RETURN_IF_ERROR(Log(absl::StrCat(NumberOf(*element), " ", from.partition.value(), " ",
                                     from.placement.value(), " ", from.index, " ", from.round, " ",
                                     absl::ToUnixMicros(absl::Now()))));
    ++read_;
    return *std::move(element);
  }

  // Reads up to `most` elements and commits a state after every commit_every of them. Returns
  // whether there were that many.
  absl::StatusOr<bool> ReadAndCommit(int64_t most) {
    for (int64_t i = 0; i < most; ++i) {
      ASSIGN_OR_RETURN(Element element, Read());
      if (!element) return false;
      if (read_ % options_.commit_every == 0 && !options_.keep_taken) {
        RETURN_IF_ERROR(Commit().status());
      }
    }
    return true;
  }

  absl::StatusOr<std::string> ReadSome(std::istringstream& words) {
    int64_t count = 0;
    words >> count;
    ASSIGN_OR_RETURN(const bool as_many, ReadAndCommit(count));
    return as_many ? "read" : "end";
  }

  absl::StatusOr<std::string> ReadAll() {
    RETURN_IF_ERROR(ReadAndCommit(std::numeric_limits<int64_t>::max()).status());
    if (!options_.keep_taken) RETURN_IF_ERROR(Commit().status());
    return "end";
  }

  absl::StatusOr<std::string> ReadOne() {
    ASSIGN_OR_RETURN(Element element, Read());
    if (!element) return "end";
    held_.push_back(std::move(element));
    return absl::StrCat("element ", NumberOf(held_.back()));
  }

  absl::StatusOr<std::string> Commit() {
    RETURN_IF_ERROR(Save(checkpoint_));
    RETURN_IF_ERROR(KeepSaved().status());
    return "committed";
  }

  absl::StatusOr<std::string> SaveTo(std::istringstream& words) {
    std::string file;
    words >> file;
    RETURN_IF_ERROR(Save(file));
    return "saved";
  }

  absl::Status Save(const std::string& file) {
    ASSIGN_OR_RETURN(saved_, iterator_->Save());
    const std::string temporary = file + ".new";
    {
      std::ofstream out(temporary, std::ios::binary);
      out << read_ << '\n' << saved_.bytes;
      if (!out.flush()) {
        return absl::ResourceExhaustedError(absl::StrCat("cannot write ", temporary));
      }
    }
    if (std::filesystem::exists(file)) {  // kept, because the new state may never be committed
      std::filesystem::remove(file + ".before");
      std::filesystem::create_hard_link(file, file + ".before");
    }
    std::filesystem::rename(temporary, file);
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> KeepSaved() {
    RETURN_IF_ERROR(iterator_->Commit(saved_));
    RETURN_IF_ERROR(Log(absl::StrCat("committed ", read_, " ", absl::ToUnixMicros(absl::Now()))));
    return "kept";
  }

  absl::StatusOr<std::string> Look() {
    bool same = true;
    for (const Element& element : held_) same = same && IsWhole(element, words_);
    return same ? "same" : "changed";
  }

  absl::StatusOr<std::string> Drop() {
    held_.clear();
    return "dropped";
  }

  absl::StatusOr<std::string> Close() {
    iterator_.reset();
    return "closed";
  }

  absl::Status Log(std::string line) {
    line += '\n';  // one write, so that kill -9 cuts no line in two
    if (::write(log_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      return absl::ErrnoToStatus(errno, "writing the log");
    }
    return absl::OkStatus();
  }

  void CloseLog() {
    if (log_ >= 0) ::close(log_);
  }

  const Options options_;
  std::optional<Iterator> iterator_;
  std::vector<Element> held_;
  std::string checkpoint_;
  State saved_;
  int64_t words_ = 0;
  int64_t read_ = 0;  // number of elements in the log that count
  int log_ = -1;
  std::ofstream rounds_;  // "round partition row" for each element of a coordinated read
};

}  // namespace
}  // namespace penstock::soak

int main(int argc, char** argv) {
  using penstock::soak::Options;
  using penstock::soak::Trainer;
  Options options;
  CLI::App app("A trainer that follows orders from standard input");
  app.add_option("--service", options.service, "the dispatcher, grpc://host:port")->required();
  app.add_option("--protocol", options.protocol, "data_transfer_protocol");
  app.add_option("--commit-every", options.commit_every, "elements between committed states");
  app.add_option("--window", options.window, "max_outstanding_requests");
  app.add_option("--compression", options.compression, "0 none, 1 AUTO, 2 Snappy, 3 LZ4");
  app.add_option("--consumer", options.consumer, "consumer_index");
  app.add_option("--consumers", options.consumers, "num_consumers; 0: not coordinated");
  app.add_option("--group-size", options.group_size, "of consumer_group");
  app.add_option("--group-member", options.group_member, "of consumer_group");
  app.add_option("--plugin", options.plugin, "plug-in that makes the same elements");
  app.add_option("--cache", options.cache, "\"memory\", or the folder for the workers' files");
  app.add_option("--passes", options.passes, "passes over the numbers, on the workers");
  app.add_option("--epochs", options.epochs, "repetitions of all passes, after Distribute");
  app.add_option("--prefetch", options.prefetch, "elements ahead, after Distribute");
  app.add_option("--shuffle-behind", options.shuffle_behind, "as --shuffle, after Distribute");
  app.add_option("--ends-at", options.ends_at, "number that ends its worker; needs --plugin");
  app.add_option("--mode", options.mode, "dynamic, off or data");
  app.add_flag("--filter", options.filter, "leave numbers out (tools/soak/numbers.h)");
  app.add_option("--shuffle", options.shuffle, "elements in the buffer of a shuffle");
  app.add_option("--step-us", options.step_us, "microseconds of a training step");
  app.add_option("--timeout-s", options.timeout_s, "seconds for which servers may be unreachable");
  app.add_flag("--ordered", options.ordered, "order kDeterministic");
  app.add_flag("--keep-taken", options.keep_taken, "keep kTaken, without states");
  app.add_flag("--at-least-once", options.at_least_once, "visitation kAtLeastOnce");
  CLI11_PARSE(app, argc, argv);
  if (!options.plugin.empty()) {
    if (absl::Status loaded = penstock::LoadPlugin(options.plugin); !loaded.ok()) {
      std::cerr << loaded << std::endl;
      return EXIT_FAILURE;
    }
  }
  Trainer trainer(options);
  for (std::string order; std::getline(std::cin, order);) {
    const absl::StatusOr<std::string> answer = trainer.Obey(order);
    std::cout << (answer.ok() ? *answer : absl::StrCat("error ", answer.status().ToString()))
              << std::endl;
  }
  return 0;
}
