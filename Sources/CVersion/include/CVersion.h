#ifndef PUSHRELAY_CVERSION_H
#define PUSHRELAY_CVERSION_H

/// One character of the commit that this was built from, as hexadecimal digits; 0 behind the last.
/// Package.swift knows it, and only a C target can be told.
char pushrelay_commit(unsigned index);

#endif
