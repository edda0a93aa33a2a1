// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/preload/libraries.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sought {
  const char* name;
  char* path;
};

static int find_library(struct dl_phdr_info* info, size_t bytes, void* context) {
  (void)bytes;
  const struct sought* sought = context;
  const char* name = info->dlpi_name ? info->dlpi_name : "";
  const char* slash = strrchr(name, '/');
  const char* base = slash ? slash + 1 : name;
  if (strncmp(base, sought->name, strlen(sought->name)) != 0) return 0;
  return snprintf(sought->path, PATH_MAX, "%s", name) < PATH_MAX;
}

int gp_find_library(const char* name, char* path) {
  struct sought sought = {name, path};
  return dl_iterate_phdr(find_library, &sought);
}

const char* gp_soname_of(void* handle) {
  struct link_map* map = NULL;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map) return "";
  const char* strings = NULL;
  size_t offset = 0;
  for (const ElfW(Dyn)* d = map->l_ld; d->d_tag != DT_NULL; ++d) {
    if (d->d_tag == DT_STRTAB) strings = (const char*)d->d_un.d_ptr;
    if (d->d_tag == DT_SONAME) offset = d->d_un.d_val;
  }
  return strings && offset ? strings + offset : "";
}

int gp_version_of_wheel(const char* library, char* version, size_t bytes) {
  char path[PATH_MAX];
  char line[256];
  const char* slash = strrchr(library, '/');
  const int length = slash ? (int)(slash - library) : 0;
  if (snprintf(path, sizeof path, "%.*s/../version.py", length, library) >= (int)sizeof path) {
    return 0;
  }
  FILE* file = fopen(path, "re");
  if (!file) return 0;
  unsigned major = 0;
  unsigned minor = 0;
  int found = 0;
  while (!found && fgets(line, sizeof line, file)) {
    found = sscanf(line, "__version__ = '%3u.%3u", &major, &minor) == 2;
  }
  fclose(file);
  return found && snprintf(version, bytes, "%u.%u", major, minor) < (int)bytes;
}

/// The names of the loaded objects, in the order of loading. They are copied, and the objects are
/// opened later: dlopen() inside dl_iterate_phdr() takes the linker's two locks in the wrong order,
/// which could deadlock with another thread that loads an object. For the same reason the memory is
/// allocated before: an allocator may have its own lock.
struct object_list {
  char* names;  // each ends with 0; NULL: only count
  size_t bytes;
  size_t room_bytes;
};

static int collect_object(struct dl_phdr_info* info, size_t bytes, void* context) {
  (void)bytes;
  struct object_list* list = context;
  if (!info->dlpi_name || !*info->dlpi_name) return 0;
  const size_t length = strlen(info->dlpi_name) + 1;
  if (list->names) {
    if (length > list->room_bytes - list->bytes) return 1;
    memcpy(list->names + list->bytes, info->dlpi_name, length);
  }
  list->bytes += length;
  return 0;
}

static struct object_list loaded_objects(void) {
  struct object_list list = {NULL, 0, 0};
  dl_iterate_phdr(collect_object, &list);
  // Another thread may load more objects before the second call.
  list.room_bytes = 2 * list.bytes + PATH_MAX;
  list.bytes = 0;
  list.names = malloc(list.room_bytes);
  if (list.names) dl_iterate_phdr(collect_object, &list);
  return list;
}

void* gp_search_objects(const char* symbol, const void* own) {
  const struct object_list list = loaded_objects();
  void* found = NULL;
  for (size_t at = 0; at < list.bytes && !found; at += strlen(list.names + at) + 1) {
    void* handle = dlopen(list.names + at, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) continue;
    void* address = dlsym(handle, symbol);
    dlclose(handle);
    if (address != own) found = address;
  }
  free(list.names);
  return found;
}

int gp_folder_of(const void* address, char* folder, size_t bytes) {
  Dl_info where;
  if (!dladdr(address, &where) || !where.dli_fname) return 0;
  const char* slash = strrchr(where.dli_fname, '/');
  const int length = slash ? (int)(slash - where.dli_fname) + 1 : 0;
  return snprintf(folder, bytes, "%.*s", length, where.dli_fname) < (int)bytes;
}
