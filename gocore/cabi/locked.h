// Opens and closes descriptors that a forked child must not keep.
#pragma once

// Like openat with mode 0600. Returns -1 and sets errno on failure; among the errors are EINTR, and ENOLCK when the table is full.
int velocpy_open_locked(int dir, const char* name, int flags);

// Like close, for a descriptor of velocpy_open_locked.
int velocpy_close_locked(int fd);
