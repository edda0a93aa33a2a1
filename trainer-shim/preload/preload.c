// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
//
// The LD_PRELOAD object. It lives in every process of a training run, also in the shells, compilers
// and data loaders, so it needs libc only and does nothing at all until one of the hooked symbols
// is called. Then, once: find the originals, find an adapter for this libtorch, point the jump
// table at the adapter's functions. On any trouble the table points at the originals, and one line
// says why.

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "trainer-shim/preload/adapter_abi.h"

#define GROUP_VTABLE "_ZTVN4c10d16ProcessGroupGlooE"
#define TORCH_LIBRARY "libtorch_cpu.so"
enum { kReasonBytes = 512, kVersionBytes = 32, kAdapterFolders = 2 };

extern void* _Atomic gp_targets[GP_HOOK_COUNT];
extern void* const gp_trampolines[GP_HOOK_COUNT];
__attribute__((visibility("hidden"))) void* gp_resolve(unsigned hook);

static const char* const kSymbols[GP_HOOK_COUNT] = {
#define GP_HOOK(name, symbol) #symbol,
#include "trainer-shim/preload/hooks.def"
#undef GP_HOOK
};

enum phase { kUnresolved, kResolving, kResolved };

static atomic_int phase = kUnresolved;
static _Atomic pid_t resolver_pid;
static _Thread_local int resolving_here __attribute__((tls_model("initial-exec")));
static void* originals[GP_HOOK_COUNT];
static char refusal[kReasonBytes];
static void (*torch_check_fail)(const char* function, const char* file, unsigned line,
                                const char* message);

static int is_on(const char* name) {
  const char* value = getenv(name);
  return value && *value && strcmp(value, "0") != 0;
}

struct torch_library {
  char path[PATH_MAX];
};

static int find_torch(struct dl_phdr_info* info, size_t bytes, void* context) {
  (void)bytes;
  const char* name = info->dlpi_name ? info->dlpi_name : "";
  const char* slash = strrchr(name, '/');
  const char* base = slash ? slash + 1 : name;
  if (strncmp(base, TORCH_LIBRARY, strlen(TORCH_LIBRARY)) != 0) return 0;
  struct torch_library* found = context;
  return snprintf(found->path, sizeof found->path, "%s", name) < (int)sizeof found->path;
}

/// The DT_SONAME of a loaded object, or "".
static const char* soname_of(void* handle) {
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

/// True if objects of the class really reach us: their table of virtual functions has our address
/// in it. A libtorch that was linked with its symbols bound locally has its own there.
static int vtable_points_here(void* torch) {
  void** vtable = dlsym(torch, GROUP_VTABLE);
  Dl_info where;
  ElfW(Sym)* symbol = NULL;
  if (!vtable || !dladdr1(vtable, &where, (void**)&symbol, RTLD_DL_SYMENT) || !symbol) return 0;
  static const enum gradplane_hook kVirtual[] = {GP_HOOK_ALLREDUCE, GP_HOOK_BROADCAST,
                                                 GP_HOOK_ALLGATHER, GP_HOOK_BARRIER};
  size_t reached = 0;
  for (size_t i = 0; i < symbol->st_size / sizeof(void*); ++i) {
    for (size_t h = 0; h < sizeof kVirtual / sizeof *kVirtual; ++h) {
      reached += vtable[i] == gp_trampolines[kVirtual[h]];
    }
  }
  return reached == sizeof kVirtual / sizeof *kVirtual;
}

/// The names of the objects that are loaded, in the order of loading. They are copied out, and the
/// objects are opened later: dlopen() inside dl_iterate_phdr() takes the linker's two locks in the
/// wrong order, and another thread that loads an object would wait for ever. For the same reason
/// the memory is there before: an allocator may have a lock of its own.
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
  // Another thread may load some more in between.
  list.room_bytes = 2 * list.bytes + PATH_MAX;
  list.bytes = 0;
  list.names = malloc(list.room_bytes);
  if (list.names) dl_iterate_phdr(collect_object, &list);
  return list;
}

/// Where the first object other than this one defines `symbol`, or NULL.
static void* search_objects(const char* symbol, const void* own) {
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

/// Fills `originals`. RTLD_NEXT does not help: torch is loaded RTLD_LOCAL.
static void find_originals(void* torch) {
  for (int i = 0; i < GP_HOOK_COUNT; ++i) {
    if (torch) originals[i] = dlsym(torch, kSymbols[i]);
    if (originals[i] && originals[i] != gp_trampolines[i]) continue;
    originals[i] = search_objects(kSymbols[i], gp_trampolines[i]);
  }
}

/// Folder of this object, with its '/', into `folder`; 0 on failure.
static int own_folder(char* folder, size_t bytes) {
  Dl_info where;
  if (!dladdr(gp_trampolines[0], &where) || !where.dli_fname) return 0;
  const char* slash = strrchr(where.dli_fname, '/');
  const int length = slash ? (int)(slash - where.dli_fname) + 1 : 0;
  return snprintf(folder, bytes, "%.*s", length, where.dli_fname) < (int)bytes;
}

/// Opens libgradplane_torch_<version>.so beside this object, or, in a build tree, in ../torch.
static void* open_adapter(const char* version, char* reason) {
  char folders[kAdapterFolders][PATH_MAX] = {"", ""};
  const char* chosen = secure_getenv("GRADPLANE_ADAPTER_DIR");
  if (chosen && *chosen) {
    snprintf(folders[0], PATH_MAX, "%s/", chosen);
  } else if (own_folder(folders[0], PATH_MAX - sizeof "../torch/")) {
    snprintf(folders[1], PATH_MAX, "%.*s../torch/", PATH_MAX - 16, folders[0]);
  }
  for (int i = 0; i < kAdapterFolders; ++i) {
    char path[PATH_MAX + 64];
    if (!*folders[i]) continue;
    snprintf(path, sizeof path, "%slibgradplane_torch_%s.so", folders[i], version);
    if (access(path, F_OK) != 0) continue;
    void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) snprintf(reason, kReasonBytes, "the adapter does not load: %s", dlerror());
    return handle;
  }
  snprintf(reason, kReasonBytes,
           "no adapter for libtorch %s (libgradplane_torch_%s.so is not in %s)", version, version,
           *folders[0] ? folders[0] : "the folder of the preload object");
  return NULL;
}

/// "libtorch_cpu.so.1.13" -> "1_13"; 0 if the name tells no version.
static int adapter_version(const char* soname, char* version) {
  const size_t prefix = strlen(TORCH_LIBRARY ".");
  if (strncmp(soname, TORCH_LIBRARY ".", prefix) != 0) return 0;
  size_t n = 0;
  for (const char* c = soname + prefix; *c && n + 1 < kVersionBytes; ++c) {
    if (*c != '.' && (*c < '0' || *c > '9')) return 0;
    version[n++] = *c == '.' ? '_' : *c;
  }
  version[n] = 0;
  return n > 0;
}

/// Fills `replacements`; 0 with a reason when this process cannot be attached.
static int attach(void* torch, void** replacements, char* reason) {
  char version[kVersionBytes];
  if (!torch) {
    snprintf(reason, kReasonBytes, "no " TORCH_LIBRARY " is loaded");
    return 0;
  }
  if (!adapter_version(soname_of(torch), version)) {
    snprintf(reason, kReasonBytes, "libtorch names no version (\"%s\")", soname_of(torch));
    return 0;
  }
  if (!vtable_points_here(torch)) {
    snprintf(reason, kReasonBytes,
             "not attachable: ProcessGroupGloo of this libtorch is bound to its own functions, or "
             "another preloaded object came first");
    return 0;
  }
  void* handle = open_adapter(version, reason);
  if (!handle) return 0;
  const struct gradplane_adapter* adapter = dlsym(handle, GRADPLANE_ADAPTER_SYMBOL);
  if (!adapter || adapter->abi != GRADPLANE_ADAPTER_ABI || adapter->hook_count != GP_HOOK_COUNT) {
    snprintf(reason, kReasonBytes, "the adapter for libtorch %s is of another build", version);
    return 0;
  }
  return adapter->attach(originals, replacements, reason, kReasonBytes) == 0;
}

/// Stands in for what gradplane carries when GRADPLANE_REQUIRE is set and nothing can be attached:
/// throws c10::Error by libc10's own function, so that the program sees an ordinary RuntimeError.
static void refuse(void) {
  torch_check_fail("a collective", "gradplane", 0, refusal);
}

/// refuse() as a jump target, or NULL where this libtorch has no way to throw from C.
static void* refusal_function(void* torch) {
  void* thrower = torch ? dlsym(torch, "_ZN3c106detail14torchCheckFailEPKcS2_jS2_") : NULL;
  if (!thrower) return NULL;
  memcpy(&torch_check_fail, &thrower, sizeof thrower);
  void (*function)(void) = refuse;
  void* address = NULL;
  memcpy(&address, &function, sizeof address);
  return address;
}

static void resolve_all(void) {
  struct torch_library library = {""};
  dl_iterate_phdr(find_torch, &library);
  void* torch = *library.path ? dlopen(library.path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
  find_originals(torch);

  void* replacements[GP_HOOK_COUNT] = {NULL};
  char reason[kReasonBytes] = "";
  if (!is_on("GRADPLANE_DISABLE") && !attach(torch, replacements, reason)) {
    memset(replacements, 0, sizeof replacements);
    const int required = is_on("GRADPLANE_REQUIRE");
    fprintf(stderr, "gradplane: %s; every collective %s\n", reason,
            required ? "fails, because GRADPLANE_REQUIRE is set" : "goes to Gloo");
    snprintf(refusal, sizeof refusal, "gradplane: %.400s, and GRADPLANE_REQUIRE is set", reason);
    void* refuses = required ? refusal_function(torch) : NULL;
    replacements[GP_HOOK_ALLREDUCE] = refuses;
    replacements[GP_HOOK_ALLREDUCE_COALESCED] = refuses;
    replacements[GP_HOOK_BROADCAST] = refuses;
    replacements[GP_HOOK_ALLGATHER] = refuses;
    replacements[GP_HOOK_ALLGATHER_COALESCED] = refuses;
    replacements[GP_HOOK_REDUCE_SCATTER] = refuses;
  }
  for (int i = 0; i < GP_HOOK_COUNT; ++i) {
    void* target = replacements[i] ? replacements[i] : originals[i];
    if (target) atomic_store(&gp_targets[i], target);
  }
}

/// Waits for the thread that resolves. A child that was forked meanwhile has no such thread.
static void wait_for_resolver(void) {
  const struct timespec pause = {0, 1000000};
  while (atomic_load(&phase) == kResolving && atomic_load(&resolver_pid) == getpid()) {
    nanosleep(&pause, NULL);
  }
}

/// Called by the stubs in trampolines.S: where hook number `hook` must jump. Any thread.
void* gp_resolve(unsigned hook) {
  const int saved_errno = errno;
  int expected = kUnresolved;
  void* target = NULL;
  if (resolving_here) {
    target = originals[hook];
  } else if (atomic_compare_exchange_strong(&phase, &expected, kResolving)) {
    atomic_store(&resolver_pid, getpid());
    resolving_here = 1;
    resolve_all();
    resolving_here = 0;
    atomic_store(&phase, kResolved);
  } else {
    wait_for_resolver();
  }
  if (!target && atomic_load(&phase) == kResolved) {
    target = atomic_load(&gp_targets[hook]);
  }
  if (!target || !originals[hook]) {
    find_originals(NULL);
    target = originals[hook];
  }
  if (!target) {
    fprintf(stderr, "gradplane: the process calls %s, which no loaded library defines\n",
            kSymbols[hook]);
    _exit(127);  // as the dynamic linker does: there is nothing to jump to
  }
  errno = saved_errno;
  return target;
}
