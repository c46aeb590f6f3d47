/// A file layer under SQLite that fails when a test says so, and that forgets what was not synced
/// when the power is cut. For tests only.
///
/// It watches the files in one directory at a time, named `relay-fault-NUMBER`; all other files
/// are left to the default layer. Numbers are all it is told, so that Swift calls it safely.
#ifndef CFAULTVFS_H
#define CFAULTVFS_H

#include <stdint.h>

/// How an operation fails.
enum faultvfs_kind {
  /// An I/O error; a write leaves nothing behind. What was written before a sync that fails never
  /// reaches the disk, whatever later syncs say, as Linux has it.
  FAULTVFS_ERROR = 0,
  /// The disk is full.
  FAULTVFS_FULL = 1,
  /// The disk is full after half of the bytes.
  FAULTVFS_SHORT = 2,
  /// The disk is read-only.
  FAULTVFS_READONLY = 3,
};

/// Makes this the process's default layer. More calls do nothing.
void faultvfs_install(void);

/// Watches the files below `relay-fault-NUMBER` from now on, without faults, counting from zero.
void faultvfs_watch(uint64_t number);

/// Lets the nth write (1 is the next) fail, and the `count - 1` after it.
void faultvfs_fail_writes(int64_t nth, int64_t count, int kind);
/// Lets the nth sync fail, and the `count - 1` after it.
void faultvfs_fail_syncs(int64_t nth, int64_t count, int kind);
/// Cuts the power at the nth operation that changes a file: it and all after it fail.
void faultvfs_cut_power_at(int64_t nth);
/// Nothing fails any more. Does not bring the power back.
void faultvfs_heal(void);

/// Brings the power back. Every file holds what was synced, and of the sectors written since then
/// those that the seed picks; 0 picks none. Call when nobody has a watched file open.
void faultvfs_restore_power(uint64_t seed);

/// How often a watched file was written, synced, changed in any way since `faultvfs_watch`.
int64_t faultvfs_writes(void);
int64_t faultvfs_syncs(void);
int64_t faultvfs_changes(void);

#endif
