// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <limits.h>
#include <stddef.h>

/// What is loaded into this process. Any thread.

/// The path of the first loaded object whose file name begins with `name`, into `path`, which has
/// room for PATH_MAX bytes; 0 if there is none.
int gp_find_library(const char* name, char* path);

/// The DT_SONAME of a loaded object, or "".
const char* gp_soname_of(void* handle);

/// The version that a wheel of PyTorch tells beside its libraries, as "2.6"; 0 if there is none.
/// `library` is the path of one of them. Their names have no version.
int gp_version_of_wheel(const char* library, char* version, size_t bytes);

/// Where the first object other than this one defines `symbol`, or NULL. `own` is this one's.
void* gp_search_objects(const char* symbol, const void* own);

/// The folder of the object that `address` lies in, with its '/'; 0 on failure.
int gp_folder_of(const void* address, char* folder, size_t bytes);
