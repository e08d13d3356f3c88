// SPDX-License-Identifier: Apache-2.0
// Short names of the macros in penstock/status.h. Not installed, because programs that use Penstock
// may have macros with these names.
#pragma once

#include "penstock/status.h"

#define RETURN_IF_ERROR(expression) PENSTOCK_RETURN_IF_ERROR(expression)
#define ASSIGN_OR_RETURN(declaration, expression) PENSTOCK_ASSIGN_OR_RETURN(declaration, expression)
