"""Looks at every file of a state directory, again and again, while the relay and its commands make them.

modes.py PUSHRELAY
The directory is one that others can enter, and the mask keeps nobody out. Prints every private file that was ever
open to others, and in the end `looked N warned N`: how often it has looked, and how many starts said that others can
enter the directory."""

import os
import subprocess
import sys
import tempfile
import threading

pushrelay = sys.argv[1]
# Certificates are for everybody.
public = (".pem",)
seen, looked, warned = set(), 0, 0


def look(folder, done):
    global looked
    while not done.is_set():
        looked += 1
        for path, _, names in os.walk(folder):
            for name in names:
                try:
                    mode = os.lstat(os.path.join(path, name)).st_mode & 0o777
                except OSError:
                    continue
                if mode & 0o077 and not name.endswith(public):
                    seen.add((name, oct(mode)))


os.umask(0)
for _ in range(4):
    with tempfile.TemporaryDirectory() as folder:
        state = folder + "/state"
        os.mkdir(state, 0o755)
        done = threading.Event()
        looking = threading.Thread(target=look, args=(state, done))
        looking.start()
        key = ["key", "new", "--state", state, "--key", "MODEKEY001", "--team", "MODETEAM01"]
        subprocess.run([pushrelay] + key, check=True, stdout=subprocess.DEVNULL)
        listeners = [part for name in ("provider", "device", "admin") for part in (f"--{name}", "127.0.0.1:0")]
        relay = subprocess.Popen(
            [pushrelay, "serve", "--state", state, "--record", state + "/record.prr"] + listeners,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        relay.stdout.readline()
        relay.terminate()
        warned += "enter or read the state directory" in relay.communicate()[1]
        done.set()
        looking.join()
for name, mode in sorted(seen):
    print("open:", name, mode)
print("looked", looked, "warned", warned)
