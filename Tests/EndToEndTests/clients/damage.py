"""Damages the files of a nats-server that does not run, as a failing disk would; says which.

usage: damage.py FOLDER

Of the blocks of messages below the folder three get one bit flipped each, and one loses its end.
"""

import pathlib
import random
import sys

blocks = sorted(path for path in pathlib.Path(sys.argv[1]).rglob("*.blk") if path.stat().st_size > 64)
if not blocks:
    sys.exit("no block of messages is there")
for path in random.choices(blocks, k=3):
    place = random.randrange(path.stat().st_size)
    with open(path, "r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1 << random.randrange(8)]))
    print(f"a bit of {path.relative_to(sys.argv[1])} at {place}", end="; ")
path = random.choice(blocks)
end = path.stat().st_size - random.randint(1, 64)
with open(path, "r+b") as file:
    file.truncate(end)
print(f"{path.relative_to(sys.argv[1])} ends at {end}")
