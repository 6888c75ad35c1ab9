// Opens and closes descriptors that a forked child must not keep.
#pragma once

// As openat with mode 0600; -1 and errno: EINTR, ENOLCK when there are too many.
int velocpy_open_locked(int dir, const char* name, int flags);

// As close, for a descriptor of velocpy_open_locked.
int velocpy_close_locked(int fd);
