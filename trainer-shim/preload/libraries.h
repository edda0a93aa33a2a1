// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <limits.h>
#include <stddef.h>

/// Functions to find libraries that are loaded into this process. Any thread.

/// Writes the path of the first loaded object whose file name begins with `name` to `path`, which
/// has room for PATH_MAX bytes. Returns 0 if there is none.
int gp_find_library(const char* name, char* path);

/// The DT_SONAME of a loaded object, or "".
const char* gp_soname_of(void* handle);

/// Reads the version of PyTorch from a file that wheels have beside their libraries, as "2.6",
/// because the names of these have no version. `library` is the path of one of them. Returns 0 if
/// there is no such file.
int gp_version_of_wheel(const char* library, char* version, size_t bytes);

/// The address of `symbol` in the first object that defines it, or NULL. `own` is the address in
/// this object, which does not count.
void* gp_search_objects(const char* symbol, const void* own);

/// Writes the folder of the object in which `address` lies, with its '/'. Returns 0 on failure.
int gp_folder_of(const void* address, char* folder, size_t bytes);
