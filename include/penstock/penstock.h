// SPDX-License-Identifier: Apache-2.0
// All of Penstock's public interface.
#pragma once

#include "penstock/dataset.h"              // IWYU pragma: export
#include "penstock/device_element.h"       // IWYU pragma: export
#include "penstock/device_stage.h"         // IWYU pragma: export
#include "penstock/distribute.h"           // IWYU pragma: export
#include "penstock/distributed_dataset.h"  // IWYU pragma: export
#include "penstock/element.h"              // IWYU pragma: export
#include "penstock/example.h"              // IWYU pragma: export
#include "penstock/explain.h"              // IWYU pragma: export
#include "penstock/expr.h"                 // IWYU pragma: export
#include "penstock/files.h"                // IWYU pragma: export
#include "penstock/image.h"                // IWYU pragma: export
#include "penstock/iterator.h"             // IWYU pragma: export
#include "penstock/lost_consumers.h"       // IWYU pragma: export
#include "penstock/map.h"                  // IWYU pragma: export
#include "penstock/plugin.h"               // IWYU pragma: export
#include "penstock/register.h"             // IWYU pragma: export
#include "penstock/replica.h"              // IWYU pragma: export
#include "penstock/server.h"               // IWYU pragma: export
#include "penstock/sharding.h"             // IWYU pragma: export
#include "penstock/sources.h"              // IWYU pragma: export
#include "penstock/states_of_ranks.h"      // IWYU pragma: export
#include "penstock/status.h"               // IWYU pragma: export
#include "penstock/step_aligner.h"         // IWYU pragma: export
#include "penstock/step_token.h"           // IWYU pragma: export
