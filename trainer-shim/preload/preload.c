// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
//
// The LD_PRELOAD object. It is loaded into every process of a training run, also into shells,
// compilers and data loaders. So it needs only libc, and does nothing until one of the hooked
// symbols is called. Then, once for each framework, it finds the originals, finds an adapter for
// the loaded library of the framework, and points the jump table at the adapter's functions. If
// anything fails, the table points at the originals, and one line on stderr says why.

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
#include "trainer-shim/preload/libraries.h"

#define GROUP_VTABLE "_ZTVN4c10d16ProcessGroupGlooE"
enum {
  kReasonBytes = 512,
  kVersionBytes = 32,
  kAdapterFolders = 2,
  kLibraries = 2,
  kHooks = GP_HOOK_COUNT + GP_MPI_HOOK_COUNT
};

extern void* _Atomic gp_targets[kHooks];
extern void* const gp_trampolines[kHooks];
__attribute__((visibility("hidden"))) void* gp_resolve(unsigned hook);

static const char* const kSymbols[kHooks] = {
#define GP_HOOK(name, symbol) #symbol,
#include "trainer-shim/preload/hooks.def"
#include "trainer-shim/preload/mpi_hooks.def"
#undef GP_HOOK
};

enum phase { kUnresolved, kResolving, kResolved };

/// A framework. Its hooks are resolved together, at the first call of one of them.
struct framework {
  const char* folder;  // of its adapters in a build tree
  const char* library[kLibraries];
  const char* adapter[kLibraries];  // "libgradplane_<this>_<version of the library>.so"
  const char* own;                  // what does its collectives without gradplane
  const char* remedy;               // what to do when an adapter is missing
  unsigned first_hook;
  unsigned hook_count;
  /// Returns whether calls really reach the hooks. If not, writes a reason and returns 0.
  int (*is_reached)(void* library, char* reason);
  /// Points the hooks at a function that fails with the text `refusal`.
  void (*refuse)(void* library, void** replacements);
  char refusal[kReasonBytes];
  atomic_int phase;
  _Atomic pid_t resolver_pid;
};

static _Thread_local const struct framework* resolving_here
    __attribute__((tls_model("initial-exec")));
static void* originals[kHooks];

static int torch_is_reached(void* torch, char* reason);
static void refuse_of_torch(void* torch, void** replacements);
static int mpi_is_reached(void* mpi, char* reason);
static void refuse_of_mpi(void* mpi, void** replacements);

static struct framework torch = {.folder = "torch",
                                 .library = {"libtorch_cpu.so"},
                                 .adapter = {"torch"},
                                 .own = "Gloo",
                                 .remedy = "; `gradplane build-adapter` makes one",
                                 .first_hook = 0,
                                 .hook_count = GP_HOOK_COUNT,
                                 .is_reached = torch_is_reached,
                                 .refuse = refuse_of_torch};

static struct framework mpi = {.folder = "mpi",
                               .library = {"libmpi.so", "libmpich.so"},
                               .adapter = {"mpi", "mpich"},
                               .own = "MPI",
                               .remedy = "",
                               .first_hook = GP_HOOK_COUNT,
                               .hook_count = GP_MPI_HOOK_COUNT,
                               .is_reached = mpi_is_reached,
                               .refuse = refuse_of_mpi};

static int is_on(const char* name) {
  const char* value = getenv(name);
  return value && *value && strcmp(value, "0") != 0;
}

/// Whether calls of virtual functions reach the hooks: the virtual table of the class must have our
/// addresses. A libtorch whose symbols were bound locally when it was linked has its own.
static int torch_is_reached(void* library, char* reason) {
  void** vtable = dlsym(library, GROUP_VTABLE);
  Dl_info where;
  ElfW(Sym)* symbol = NULL;
  static const enum gradplane_hook kVirtual[] = {GP_HOOK_ALLREDUCE, GP_HOOK_BROADCAST,
                                                 GP_HOOK_ALLGATHER, GP_HOOK_BARRIER};
  const size_t needed = sizeof kVirtual / sizeof *kVirtual;
  size_t reached = 0;
  if (vtable && dladdr1(vtable, &where, (void**)&symbol, RTLD_DL_SYMENT) && symbol) {
    for (size_t i = 0; i < symbol->st_size / sizeof(void*); ++i) {
      for (size_t h = 0; h < needed; ++h) reached += vtable[i] == gp_trampolines[kVirtual[h]];
    }
  }
  if (reached == needed) return 1;
  snprintf(reason, kReasonBytes,
           "not attachable: ProcessGroupGloo of this libtorch is bound to its own functions, or "
           "another preloaded object came first");
  return 0;
}

/// Always true: this is only asked after a hook of MPI was called.
static int mpi_is_reached(void* library, char* reason) {
  (void)library;
  (void)reason;
  return 1;
}

/// Fills `originals`. RTLD_NEXT is not enough, because Python loads torch with RTLD_LOCAL.
static void find_originals(const struct framework* of, void* library) {
  for (unsigned i = of->first_hook; i < of->first_hook + of->hook_count; ++i) {
    if (of == &mpi) originals[i] = dlsym(RTLD_NEXT, kSymbols[i]);  // perhaps a profiling tool's
    if (originals[i] && originals[i] != gp_trampolines[i]) continue;
    if (library) originals[i] = dlsym(library, kSymbols[i]);
    if (originals[i] && originals[i] != gp_trampolines[i]) continue;
    originals[i] = gp_search_objects(kSymbols[i], gp_trampolines[i]);
  }
}

/// Opens libgradplane_<name>_<version>.so beside this object, or, in a build tree, in its own
/// folder.
static void* open_adapter(const struct framework* of, const char* name, const char* version,
                          char* reason) {
  char folders[kAdapterFolders][PATH_MAX] = {"", ""};
  const char* chosen = secure_getenv("GRADPLANE_ADAPTER_DIR");
  if (chosen && *chosen) {
    snprintf(folders[0], PATH_MAX, "%s/", chosen);
  } else if (gp_folder_of(gp_trampolines[0], folders[0], PATH_MAX - sizeof "../torch/")) {
    snprintf(folders[1], PATH_MAX, "%.*s../%s/", PATH_MAX - 16, folders[0], of->folder);
  }
  for (int i = 0; i < kAdapterFolders; ++i) {
    char path[PATH_MAX + 2 * kVersionBytes];
    if (!*folders[i]) continue;
    snprintf(path, sizeof path, "%slibgradplane_%s_%s.so", folders[i], name, version);
    if (access(path, F_OK) != 0) continue;
    void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) snprintf(reason, kReasonBytes, "the adapter does not load: %s", dlerror());
    return handle;
  }
  snprintf(reason, kReasonBytes, "no adapter for lib%s %s (libgradplane_%s_%s.so is not in %s%s)",
           name, version, name, version,
           *folders[0] ? folders[0] : "the folder of the preload object", of->remedy);
  return NULL;
}

/// "1.13" -> "1_13"; 0 if it is no version.
static int write_version(const char* text, char* version) {
  size_t n = 0;
  for (const char* c = text; *c && n + 1 < kVersionBytes; ++c) {
    if (*c != '.' && (*c < '0' || *c > '9')) return 0;
    version[n++] = *c == '.' ? '_' : *c;
  }
  version[n] = 0;
  return n > 0;
}

/// Reads the version from a name like "libtorch_cpu.so.1.13", where `name` is "libtorch_cpu.so", or
/// from the wheel of a library whose name has none. Returns 0 if there is neither.
static int read_version(void* library, const char* name, char* version) {
  const char* soname = gp_soname_of(library);
  const size_t prefix = strlen(name);
  if (strncmp(soname, name, prefix) == 0 && soname[prefix] == '.') {
    return write_version(soname + prefix + 1, version);
  }
  char path[PATH_MAX];
  char text[kVersionBytes];
  return gp_find_library(name, path) && gp_version_of_wheel(path, text, sizeof text) &&
         write_version(text, version);
}

/// The loaded library of the framework. `which` becomes its index. NULL with a reason if none is
/// loaded.
static void* find_library(const struct framework* of, int* which, char* reason) {
  char path[PATH_MAX] = "";
  for (*which = 0; *which < kLibraries && of->library[*which]; ++*which) {
    if (!gp_find_library(of->library[*which], path)) continue;
    void* library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (library) return library;
  }
  snprintf(reason, kReasonBytes, "no %s is loaded", of->library[0]);
  return NULL;
}

/// Fills `replacements`. Returns 0 with a reason when this process cannot be attached.
static int attach(const struct framework* of, void* library, int which, void** replacements,
                  char* reason) {
  char version[kVersionBytes];
  if (!library) return 0;
  const char* name = of->adapter[which];
  if (!read_version(library, of->library[which], version)) {
    snprintf(reason, kReasonBytes, "%s names no version (\"%s\")", of->library[which],
             gp_soname_of(library));
    return 0;
  }
  if (!of->is_reached(library, reason)) return 0;
  void* handle = open_adapter(of, name, version, reason);
  if (!handle) return 0;
  const struct gradplane_adapter* adapter = dlsym(handle, GRADPLANE_ADAPTER_SYMBOL);
  if (!adapter || adapter->abi != GRADPLANE_ADAPTER_ABI || adapter->hook_count != of->hook_count) {
    snprintf(reason, kReasonBytes, "the adapter for lib%s %s is of another build", name, version);
    return 0;
  }
  return adapter->attach(originals + of->first_hook, replacements, reason, kReasonBytes) == 0;
}

static void (*torch_check_fail)(const char* function, const char* file, unsigned line,
                                const char* message);

/// Replaces collectives when GRADPLANE_REQUIRE is set and nothing can be attached. It throws
/// c10::Error by libc10's own function, so that the program sees an ordinary RuntimeError.
static void refuse_in_torch(void) {
  torch_check_fail("a collective", "gradplane", 0, torch.refusal);
}

/// Replaces nothing if this libtorch has no function that throws from C.
static void refuse_of_torch(void* library, void** replacements) {
  void* thrower = library ? dlsym(library, "_ZN3c106detail14torchCheckFailEPKcS2_jS2_") : NULL;
  if (!thrower) return;
  memcpy(&torch_check_fail, &thrower, sizeof thrower);
  static const enum gradplane_hook kRefused[] = {
      GP_HOOK_ALLREDUCE, GP_HOOK_ALLREDUCE_COALESCED, GP_HOOK_BROADCAST,
      GP_HOOK_ALLGATHER, GP_HOOK_ALLGATHER_COALESCED, GP_HOOK_REDUCE_SCATTER};
  void (*function)(void) = refuse_in_torch;
  for (size_t i = 0; i < sizeof kRefused / sizeof *kRefused; ++i) {
    memcpy(&replacements[kRefused[i]], &function, sizeof function);
  }
}

/// The value of MPI_ERR_OTHER in MPICH. It is an error in every MPI.
enum { kMpiError = 15 };

/// Replaces MPI_Init. MPI does not begin, so a program that ignores this error ends by MPI's own
/// error at its next call.
static int refuse_to_begin_mpi(void) {
  fprintf(stderr, "%s\n", mpi.refusal);
  return kMpiError;
}

/// Replaces collectives, for a program that has begun MPI in another way. It ends the process,
/// because few programs check errors, which MPI does not return by default, and would go on
/// without a result.
static int refuse_in_mpi(void) {
  fprintf(stderr, "%s\n", mpi.refusal);
  _exit(kMpiError);
}

static void refuse_of_mpi(void* library, void** replacements) {
  (void)library;
  int (*begin)(void) = refuse_to_begin_mpi;
  int (*reduce)(void) = refuse_in_mpi;
  for (int i = 0; i < GP_MPI_HOOK_COUNT; ++i) {
    if (i == GP_MPI_HOOK_FINALIZE || i == GP_MPI_HOOK_WAITALL) continue;
    const int begins = i == GP_MPI_HOOK_INIT || i == GP_MPI_HOOK_INIT_THREAD;
    memcpy(&replacements[i], begins ? &begin : &reduce, sizeof begin);
  }
}

static void resolve_all(struct framework* of) {
  void* replacements[kHooks] = {NULL};
  char reason[kReasonBytes] = "";
  int which = 0;
  void* library = find_library(of, &which, reason);
  find_originals(of, library);
  if (!is_on("GRADPLANE_DISABLE") && !attach(of, library, which, replacements, reason)) {
    memset(replacements, 0, sizeof replacements);
    const int required = is_on("GRADPLANE_REQUIRE");
    if (required) {
      fprintf(stderr, "gradplane: %s; every collective fails, because GRADPLANE_REQUIRE is set\n",
              reason);
      snprintf(of->refusal, kReasonBytes, "gradplane: %.400s, and GRADPLANE_REQUIRE is set",
               reason);
      of->refuse(library, replacements);
    } else {
      fprintf(stderr, "gradplane: %s; every collective goes to %s\n", reason, of->own);
    }
  }
  for (unsigned i = 0; i < of->hook_count; ++i) {
    void* target = replacements[i] ? replacements[i] : originals[of->first_hook + i];
    if (target) atomic_store(&gp_targets[of->first_hook + i], target);
  }
}

/// Waits for the thread that resolves. A child of a fork() in that time does not have this thread,
/// so it does not wait.
static void wait_for_resolver(const struct framework* of) {
  const struct timespec pause = {0, 1000000};
  while (atomic_load(&of->phase) == kResolving && atomic_load(&of->resolver_pid) == getpid()) {
    nanosleep(&pause, NULL);
  }
}

/// Returns the address to which hook number `hook` must jump. The stubs in trampolines.S call it.
/// Any thread.
void* gp_resolve(unsigned hook) {
  struct framework* of = hook < mpi.first_hook ? &torch : &mpi;
  const int saved_errno = errno;
  int expected = kUnresolved;
  void* target = NULL;
  if (resolving_here == of) {
    target = originals[hook];
  } else if (atomic_compare_exchange_strong(&of->phase, &expected, kResolving)) {
    atomic_store(&of->resolver_pid, getpid());
    const struct framework* outer = resolving_here;
    resolving_here = of;
    resolve_all(of);
    resolving_here = outer;
    atomic_store(&of->phase, kResolved);
  } else {
    wait_for_resolver(of);
  }
  if (!target && atomic_load(&of->phase) == kResolved) {
    target = atomic_load(&gp_targets[hook]);
  }
  if (!target || !originals[hook]) {
    find_originals(of, NULL);
    target = originals[hook];
  }
  if (!target) {
    fprintf(stderr, "gradplane: the process calls %s, which no loaded library defines\n",
            kSymbols[hook]);
    _exit(127);  // as the dynamic linker does for a missing symbol
  }
  errno = saved_errno;
  return target;
}
