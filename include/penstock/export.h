// SPDX-License-Identifier: Apache-2.0
// PENSTOCK_EXPORT marks the declarations that libpenstock.so exports: all of a namespace's block.
// Everything else is compiled with hidden visibility.
#pragma once

#define PENSTOCK_EXPORT [[gnu::visibility("default")]]
