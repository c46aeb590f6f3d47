#define _GNU_SOURCE
#include "CFaultVFS.h"

#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECTOR = 512 };

/// A write or, without bytes, a truncation that was not synced yet.
typedef struct Change {
  struct Change *next;
  int64_t offset;
  int64_t count;
  unsigned char *bytes;
} Change;

/// What a disk would hold of a file.
typedef struct Disk {
  struct Disk *next;
  char *path;
  unsigned char *bytes;
  int64_t count;
  Change *first;
  Change **last;
  int isMarked;
} Disk;

typedef struct File {
  sqlite3_file base;
  Disk *disk;  // NULL for a file that is not watched.
  const char *path;  // SQLite keeps it while the file is open.
  int generation;
  sqlite3_file *real;
} File;

typedef struct Fault {
  int64_t from, to;  // Counts of operations; never when from is 0.
  int kind;
} Fault;

// Recursive: SQLite's own layer is called with it held.
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static sqlite3_vfs *root;
static sqlite3_vfs layer;
static char watched[64];
static Disk *disks;
static int64_t writes, syncs, changes, cutAt;
static Fault writeFault, syncFault;
static int isDead;
/// Files that were opened before the last `faultvfs_watch` or restore are not watched any more.
static int generation;

#define LOCKED(body) do { pthread_mutex_lock(&lock); body; pthread_mutex_unlock(&lock); } while (0)

// --- What a disk holds ---

static void forgetChanges(Disk *disk) {
  while (disk->first) {
    Change *change = disk->first;
    disk->first = change->next;
    free(change->bytes);
    free(change);
  }
  disk->last = &disk->first;
}

static void addChange(Disk *disk, const void *bytes, int64_t count, int64_t offset) {
  disk->isMarked = 0;
  Change *change = calloc(1, sizeof *change);
  change->offset = offset;
  change->count = count;
  if (bytes) {
    change->bytes = malloc(count ? count : 1);
    memcpy(change->bytes, bytes, count);
  }
  *disk->last = change;
  disk->last = &change->next;
}

static void resize(Disk *disk, int64_t count) {
  disk->bytes = realloc(disk->bytes, count ? count : 1);
  if (count > disk->count) memset(disk->bytes + disk->count, 0, count - disk->count);
  disk->count = count;
}

static void put(Disk *disk, const unsigned char *bytes, int64_t count, int64_t offset) {
  if (offset + count > disk->count) resize(disk, offset + count);
  memcpy(disk->bytes + offset, bytes, count);
}

static uint64_t nextRandom(uint64_t *state) {
  uint64_t word = *state += 0x9E3779B97F4A7C15u;
  word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9u;
  word = (word ^ word >> 27) * 0x94D049BB133111EBu;
  return word ^ word >> 31;
}

/// Applies all changes, or with a seed a random half of their sectors.
static void apply(Disk *disk, uint64_t *seed) {
  for (Change *change = disk->first; change; change = change->next) {
    if (!change->bytes) {
      if (!seed || nextRandom(seed) & 1) resize(disk, change->offset);
      continue;
    }
    int64_t done = 0;
    while (done < change->count) {
      int64_t part = SECTOR - (change->offset + done) % SECTOR;
      if (part > change->count - done) part = change->count - done;
      if (!seed || nextRandom(seed) & 1) {
        put(disk, change->bytes + done, part, change->offset + done);
      }
      done += part;
    }
  }
  forgetChanges(disk);
}

static Disk *findDisk(const char *path) {
  for (Disk *disk = disks; disk; disk = disk->next) {
    if (strcmp(disk->path, path) == 0) return disk;
  }
  return NULL;
}

static void dropDisk(const char *path) {
  for (Disk **link = &disks; *link; link = &(*link)->next) {
    Disk *disk = *link;
    if (strcmp(disk->path, path) != 0) continue;
    *link = disk->next;
    forgetChanges(disk);
    free(disk->bytes);
    free(disk->path);
    free(disk);
    return;
  }
}

static void readFile(Disk *disk, const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) return;
  unsigned char buffer[4096];
  size_t count;
  while ((count = fread(buffer, 1, sizeof buffer, file)) > 0) put(disk, buffer, count, disk->count);
  fclose(file);
}

/// A closed file is marked by an impossible time, to notice when somebody writes to it without us.
static const struct timespec marked[2] = {{.tv_sec = 1}, {.tv_sec = 1}};

static int wasWritten(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && status.st_mtime != marked[1].tv_sec;
}

static Disk *openDisk(const char *path) {
  Disk *disk = findDisk(path);
  if (disk && disk->isMarked && wasWritten(path)) {
    // Written again and synced by the journal itself.
    forgetChanges(disk);
    resize(disk, 0);
    readFile(disk, path);
  }
  if (disk) {
    disk->isMarked = 0;
    return disk;
  }
  // The journal is made under another name and then renamed, which SQLite does not see.
  char draft[1024];
  snprintf(draft, sizeof draft, "%s.new", path);
  disk = findDisk(draft);
  if (disk && access(draft, F_OK) != 0) {
    free(disk->path);
    disk->path = strdup(path);
    return disk;
  }
  disk = calloc(1, sizeof *disk);
  disk->path = strdup(path);
  disk->last = &disk->first;
  readFile(disk, path);
  disk->next = disks;
  disks = disk;
  return disk;
}

// --- Faults ---

static int hits(const Fault *fault, int64_t count) {
  return fault->from > 0 && count >= fault->from && count < fault->to;
}

/// Counts a change; false when the power is, or now goes, away.
static int hasPower(void) {
  if (isDead) return 0;
  changes += 1;
  if (cutAt > 0 && changes >= cutAt) isDead = 1;
  return !isDead;
}

static int code(int kind, int other) {
  switch (kind) {
    case FAULTVFS_FULL:
    case FAULTVFS_SHORT: return SQLITE_FULL;
    case FAULTVFS_READONLY: return SQLITE_READONLY;
    default: return other;
  }
}

// --- Files ---

static int isStale(const File *file) { return !file->disk || file->generation != generation; }

static int fileClose(sqlite3_file *base) {
  File *file = (File *)base;
  int result = file->real->pMethods ? file->real->pMethods->xClose(file->real) : SQLITE_OK;
  LOCKED({
    // It may be gone: then this is another file, or nothing.
    Disk *disk = isStale(file) ? NULL : findDisk(file->path);
    if (disk) disk->isMarked = utimensat(AT_FDCWD, disk->path, marked, 0) == 0;
  });
  return result;
}

static int fileRead(sqlite3_file *base, void *bytes, int count, sqlite3_int64 offset) {
  File *file = (File *)base;
  if (!file->disk) return file->real->pMethods->xRead(file->real, bytes, count, offset);
  int result = SQLITE_IOERR_READ, dead;
  LOCKED(dead = isDead && !isStale(file));
  if (!dead) result = file->real->pMethods->xRead(file->real, bytes, count, offset);
  return result;
}

static int writeWatched(File *file, const void *bytes, int count, sqlite3_int64 offset) {
  if (isStale(file)) return file->real->pMethods->xWrite(file->real, bytes, count, offset);
  if (!hasPower()) return SQLITE_IOERR_WRITE;
  writes += 1;
  if (hits(&writeFault, writes)) {
    if (writeFault.kind == FAULTVFS_SHORT && count > 1) {
      file->real->pMethods->xWrite(file->real, bytes, count / 2, offset);
      addChange(file->disk, bytes, count / 2, offset);
    }
    return code(writeFault.kind, SQLITE_IOERR_WRITE);
  }
  int result = file->real->pMethods->xWrite(file->real, bytes, count, offset);
  if (result == SQLITE_OK) addChange(file->disk, bytes, count, offset);
  return result;
}

static int fileWrite(sqlite3_file *base, const void *bytes, int count, sqlite3_int64 offset) {
  File *file = (File *)base;
  if (!file->disk) return file->real->pMethods->xWrite(file->real, bytes, count, offset);
  int result;
  LOCKED(result = writeWatched(file, bytes, count, offset));
  return result;
}

static int truncateWatched(File *file, sqlite3_int64 size) {
  if (isStale(file)) return file->real->pMethods->xTruncate(file->real, size);
  if (!hasPower()) return SQLITE_IOERR_TRUNCATE;
  int result = file->real->pMethods->xTruncate(file->real, size);
  if (result == SQLITE_OK) addChange(file->disk, NULL, 0, size);
  return result;
}

static int fileTruncate(sqlite3_file *base, sqlite3_int64 size) {
  File *file = (File *)base;
  if (!file->disk) return file->real->pMethods->xTruncate(file->real, size);
  int result;
  LOCKED(result = truncateWatched(file, size));
  return result;
}

static int syncWatched(File *file, int flags) {
  if (isStale(file)) return file->real->pMethods->xSync(file->real, flags);
  if (!hasPower()) return SQLITE_IOERR_FSYNC;
  syncs += 1;
  if (hits(&syncFault, syncs)) {
    // The kernel has called the pages clean: no later sync will write them.
    forgetChanges(file->disk);
    return code(syncFault.kind, SQLITE_IOERR_FSYNC);
  }
  apply(file->disk, NULL);
  return SQLITE_OK;  // Without a real one: the disk is ours.
}

static int fileSync(sqlite3_file *base, int flags) {
  File *file = (File *)base;
  if (!file->disk) return file->real->pMethods->xSync(file->real, flags);
  int result;
  LOCKED(result = syncWatched(file, flags));
  return result;
}

#define REAL(file) ((File *)(file))->real
#define CALL(file, name, ...) REAL(file)->pMethods->name(REAL(file), ##__VA_ARGS__)

static int fileSize(sqlite3_file *f, sqlite3_int64 *size) { return CALL(f, xFileSize, size); }
static int fileLock(sqlite3_file *f, int level) { return CALL(f, xLock, level); }
static int fileUnlock(sqlite3_file *f, int level) { return CALL(f, xUnlock, level); }
static int fileReserved(sqlite3_file *f, int *out) { return CALL(f, xCheckReservedLock, out); }
static int fileControl(sqlite3_file *f, int op, void *arg) {
  return CALL(f, xFileControl, op, arg);
}
static int fileSectorSize(sqlite3_file *f) { return CALL(f, xSectorSize); }
static int fileTraits(sqlite3_file *f) { return CALL(f, xDeviceCharacteristics); }
static int fileShmMap(sqlite3_file *f, int region, int size, int extend, void volatile **out) {
  return CALL(f, xShmMap, region, size, extend, out);
}
static int fileShmLock(sqlite3_file *f, int offset, int n, int flags) {
  return CALL(f, xShmLock, offset, n, flags);
}
static void fileShmBarrier(sqlite3_file *f) { CALL(f, xShmBarrier); }
static int fileShmUnmap(sqlite3_file *f, int erase) { return CALL(f, xShmUnmap, erase); }

// Version 2: no memory mapping, which could not fail.
static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = fileClose,
    .xRead = fileRead,
    .xWrite = fileWrite,
    .xTruncate = fileTruncate,
    .xSync = fileSync,
    .xFileSize = fileSize,
    .xLock = fileLock,
    .xUnlock = fileUnlock,
    .xCheckReservedLock = fileReserved,
    .xFileControl = fileControl,
    .xSectorSize = fileSectorSize,
    .xDeviceCharacteristics = fileTraits,
    .xShmMap = fileShmMap,
    .xShmLock = fileShmLock,
    .xShmBarrier = fileShmBarrier,
    .xShmUnmap = fileShmUnmap,
};

// --- The layer ---

static int isWatched(const char *path) {
  return path && watched[0] && strstr(path, watched) != NULL;
}

static int layerOpen(
    sqlite3_vfs *vfs, const char *path, sqlite3_file *base, int flags, int *outFlags) {
  (void)vfs;
  File *file = (File *)base;
  memset(file, 0, sizeof *file);
  file->real = (sqlite3_file *)(file + 1);
  file->path = path;
  int result = SQLITE_OK;
  LOCKED({
    if (isWatched(path)) {
      if (isDead) result = SQLITE_CANTOPEN;
      else file->disk = openDisk(path);
      file->generation = generation;
    }
  });
  if (result != SQLITE_OK) return result;
  result = root->xOpen(root, path, file->real, flags, outFlags);
  if (file->real->pMethods) base->pMethods = &methods;
  return result;
}

static int layerDelete(sqlite3_vfs *vfs, const char *path, int syncDirectory) {
  (void)vfs;
  int result = SQLITE_IOERR_DELETE;
  LOCKED({
    if (!isWatched(path)) {
      result = root->xDelete(root, path, syncDirectory);
    } else if (hasPower()) {
      result = root->xDelete(root, path, 0);
      dropDisk(path);
    }
  });
  return result;
}

static int layerAccess(sqlite3_vfs *vfs, const char *path, int flags, int *out) {
  (void)vfs;
  return root->xAccess(root, path, flags, out);
}
static int layerFullPathname(sqlite3_vfs *vfs, const char *path, int count, char *out) {
  (void)vfs;
  return root->xFullPathname(root, path, count, out);
}
static int layerRandomness(sqlite3_vfs *vfs, int count, char *out) {
  (void)vfs;
  return root->xRandomness(root, count, out);
}
static int layerSleep(sqlite3_vfs *vfs, int microseconds) {
  (void)vfs;
  return root->xSleep(root, microseconds);
}
static int layerCurrentTime(sqlite3_vfs *vfs, double *out) {
  (void)vfs;
  return root->xCurrentTime(root, out);
}
static int layerCurrentTimeInt64(sqlite3_vfs *vfs, sqlite3_int64 *out) {
  (void)vfs;
  return root->xCurrentTimeInt64(root, out);
}
static int layerLastError(sqlite3_vfs *vfs, int count, char *out) {
  (void)vfs;
  return root->xGetLastError(root, count, out);
}

static void install(void) {
  root = sqlite3_vfs_find(NULL);
  layer = (sqlite3_vfs){
      .iVersion = 2,
      .szOsFile = (int)sizeof(File) + root->szOsFile,
      .mxPathname = root->mxPathname,
      .zName = "fault",
      .xOpen = layerOpen,
      .xDelete = layerDelete,
      .xAccess = layerAccess,
      .xFullPathname = layerFullPathname,
      .xRandomness = layerRandomness,
      .xSleep = layerSleep,
      .xCurrentTime = layerCurrentTime,
      .xGetLastError = layerLastError,
      .xCurrentTimeInt64 = layerCurrentTimeInt64,
  };
  sqlite3_vfs_register(&layer, 1);
}

void faultvfs_install(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, install);
}

void faultvfs_watch(uint64_t number) {
  LOCKED({
    while (disks) dropDisk(disks->path);
    snprintf(watched, sizeof watched, "relay-fault-%llu/", (unsigned long long)number);
    writes = syncs = changes = cutAt = 0;
    writeFault = syncFault = (Fault){0};
    isDead = 0;
    generation += 1;
  });
}

void faultvfs_fail_writes(int64_t nth, int64_t count, int kind) {
  LOCKED(writeFault.from = writes + nth; writeFault.to = writeFault.from + count;
         writeFault.kind = kind);
}

void faultvfs_fail_syncs(int64_t nth, int64_t count, int kind) {
  LOCKED(syncFault.from = syncs + nth; syncFault.to = syncFault.from + count;
         syncFault.kind = kind);
}

void faultvfs_cut_power_at(int64_t nth) { LOCKED(cutAt = changes + nth); }

void faultvfs_heal(void) {
  LOCKED(cutAt = 0; writeFault.from = 0; syncFault.from = 0);
}

static void restore(Disk *disk, uint64_t *seed) {
  if (seed) apply(disk, seed);
  forgetChanges(disk);
  FILE *file = fopen(disk->path, "r+b");
  if (!file) return;
  fwrite(disk->bytes, 1, disk->count, file);
  fflush(file);
  if (ftruncate(fileno(file), disk->count) != 0) abort();
  fclose(file);
  char shared[1024];
  snprintf(shared, sizeof shared, "%s-shm", disk->path);
  unlink(shared);
}

void faultvfs_restore_power(uint64_t seed) {
  LOCKED({
    uint64_t state = seed;
    for (Disk *disk = disks; disk; disk = disk->next) restore(disk, seed ? &state : NULL);
    while (disks) dropDisk(disks->path);
    cutAt = writeFault.from = syncFault.from = 0;
    isDead = 0;
    generation += 1;
  });
}

int64_t faultvfs_writes(void) { int64_t n; LOCKED(n = writes); return n; }
int64_t faultvfs_syncs(void) { int64_t n; LOCKED(n = syncs); return n; }
int64_t faultvfs_changes(void) { int64_t n; LOCKED(n = changes); return n; }
