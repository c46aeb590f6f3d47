"""A wire that can be cut: passes TCP connections on, byte for byte.

usage: link.py PORT=HOST:PORT[,HOST:PORT…] …

Listens on each port of loopback and hands its connections to the targets in turn, the next one where
one refuses. Prints `ready`. SIGUSR1 cuts all of it: nothing goes through, nothing is closed, as when a
cable is out; SIGHUP makes the way long: all is late, and now and then a connection breaks. SIGUSR2 mends
it, and what was sent meanwhile arrives.
"""

import asyncio
import random
import signal
import socket
import sys


class Wire:
    def __init__(self):
        self.whole = asyncio.Event()
        self.whole.set()
        self.is_long = False

    def lengthen(self):
        self.is_long = True

    def mend(self):
        self.is_long = False
        self.whole.set()

    async def pump(self, reader, writer):
        try:
            while data := await reader.read(1 << 16):
                await self.whole.wait()
                if self.is_long:
                    await asyncio.sleep(random.uniform(0, 0.05))
                    if random.random() < 1 / 300:
                        raise OSError("the connection breaks")
                writer.write(data)
                await writer.drain()
            await self.whole.wait()
            writer.write_eof()
        except OSError:
            # The other side hears of it when the wire is whole.
            await self.whole.wait()
            writer.transport.abort()

    async def connect(self, targets):
        for host, port in targets:
            try:
                return await asyncio.open_connection(host, port)
            except OSError:
                continue
        return None

    def listener(self, targets):
        async def take(reader, writer):
            # Whose turn it is.
            targets.append(targets.pop(0))
            await self.whole.wait()
            other = await self.connect(targets)
            if other:
                for stream in writer, other[1]:
                    stream.get_extra_info("socket").setsockopt(
                        socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
                    )
                await asyncio.gather(self.pump(reader, other[1]), self.pump(other[0], writer))
                other[1].transport.abort()
            writer.transport.abort()

        return take


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


async def main():
    wire = Wire()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, wire.whole.clear)
    loop.add_signal_handler(signal.SIGHUP, wire.lengthen)
    loop.add_signal_handler(signal.SIGUSR2, wire.mend)
    for argument in sys.argv[1:]:
        port, targets = argument.split("=", 1)
        take = wire.listener([address(target) for target in targets.split(",")])
        await asyncio.start_server(take, "127.0.0.1", int(port))
    print("ready", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
