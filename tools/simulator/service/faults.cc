// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/service/faults.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "control/stub/dispatcher_stub.h"

namespace penstock::simulator {
namespace {

constexpr absl::Duration kOperatorTimeout = absl::Seconds(5);

// Returns whether the dispatcher may take a worker for dead because of the fault.
bool MayKillWorker(const Fault& fault) {
  const bool separates = fault.kind == Fault::Kind::kCut || fault.kind == Fault::Kind::kBreak;
  const bool stops = fault.kind == Fault::Kind::kCrash || fault.kind == Fault::Kind::kPause;
  return (separates && fault.other.kind == RoleKind::kWorker) ||
         ((separates || stops) && fault.target.kind == RoleKind::kWorker);
}

}  // namespace

void Faults::Begin() {
  for (const FaultRule& rule : world_.scenario.rules) Await(rule);
}

void Faults::Await(const FaultRule& rule) {
  const absl::Duration pause = dice_.Draw(rule.when);
  if (world_.now() + pause >= world_.scenario.calm) return;
  world_.scheduler.At(world_.scheduler.now() + pause, world_.director, [this, &rule] {
    const auto last = static_cast<int64_t>(rule.faults.size()) - 1;
    Do(rule.faults[static_cast<size_t>(dice_.Between(0, last))]);
    if (rule.repeats) Await(rule);
  });
}

void Faults::Do(const Fault& fault) {
  const bool joins = fault.kind == Fault::Kind::kJoin;
  const bool fills = fault.kind == Fault::Kind::kFillDisk;
  const bool finalises = fault.kind == Fault::Kind::kFinalise;
  const bool has_target = !joins && !fills && !finalises;
  Role* const role = has_target ? cluster_.Find(fault.target, dice_) : nullptr;
  if (has_target && role == nullptr) return;
  world_.coverage.OnFault(fault.name, world_.shadow);
  if (MayKillWorker(fault)) ++world_.worker_faults;
  if (joins) return cluster_.Join(fault.target.kind);
  if (fills) return FillDisk(fault);
  if (finalises) return Finalise();
  Do(fault, *role);
}

void Faults::Do(const Fault& fault, Role& role) {
  switch (fault.kind) {
    case Fault::Kind::kCrash:
      return Crash(fault, role);
    case Fault::Kind::kPause:
      return Pause(fault, role);
    case Fault::Kind::kCut:
    case Fault::Kind::kBreak:
      return Separate(fault, role);
    case Fault::Kind::kDrain:
      role.Tell(Order::kDrain);
      return BringBack(fault, role);
    case Fault::Kind::kLeave:
      role.Tell(Order::kLeave);
      return BringBack(fault, role);
    case Fault::Kind::kJumpClock:
      return JumpClock(fault, role);
    case Fault::Kind::kJoin:
    case Fault::Kind::kFillDisk:
    case Fault::Kind::kFinalise:
      return;  // has no target
  }
}

void Faults::Crash(const Fault& fault, Role& role) {
  role.Crash();
  if (fault.power_loss) static_cast<Dispatcher&>(role).LosePower();  // as the parser checks
  BringBack(fault, role);
}

void Faults::BringBack(const Fault& fault, Role& role) {
  if (fault.back.has_value()) role.StartAfter(Draw(*fault.back));
}

void Faults::Pause(const Fault& fault, Role& role) {
  if (role.process()->paused()) return;
  role.Pause();
  world_.scheduler.At(world_.scheduler.now() + Draw(fault.time), world_.director,
                      [&role] { role.Continue(); });
}

void Faults::Separate(const Fault& fault, Role& role) {
  const Role* const other = cluster_.Find(fault.other, dice_, &role);
  if (other == nullptr) return;
  if (fault.kind == Fault::Kind::kBreak) {
    world_.Note("break", absl::StrCat(role.name(), " ", other->name()));
    return world_.network.Break(role.name(), other->name());
  }
  const absl::Duration time = Draw(fault.time);
  world_.Note("cut", absl::StrCat(role.name(), " ", other->name(), fault.both_ways ? " both " : " ",
                                  absl::FormatDuration(time)));
  world_.network.Cut(role.name(), other->name(), time);
  if (fault.both_ways) world_.network.Cut(other->name(), role.name(), time);
}

void Faults::FillDisk(const Fault& fault) {
  cluster_.FillDisk();
  world_.scheduler.At(world_.scheduler.now() + Draw(fault.time), world_.director,
                      [this] { cluster_.FreeDisk(); });
}

// The operator tries once.
void Faults::Finalise() {
  world_.scheduler.StartIn(world_.scheduler.NewProcess("operator", "operator"), "main", [this] {
    const absl::StatusOr<std::unique_ptr<control::DispatcherStub>> stub =
        control::DispatcherStub::Make(world_.service);
    const absl::Status status =
        stub.ok() ? (*stub)->FinaliseUpgrade({.timeout = kOperatorTimeout}) : stub.status();
    world_.Note("finalised", status.ToString());
    if (stub.ok()) (*stub)->Stop();
  });
}

void Faults::JumpClock(const Fault& fault, Role& role) {
  const absl::Duration by = dice_.Draw(fault.time);
  world_.Note("jump", absl::StrCat(role.name(), " ", absl::FormatDuration(by)));
  Process& process = *role.process();
  process.SetClocks(process.boot_skew(), process.wall_skew() + by);
}

absl::Duration Faults::Draw(const Span& span) {
  return std::min(dice_.Draw(span), world_.scenario.calm - world_.now());
}

}  // namespace penstock::simulator
