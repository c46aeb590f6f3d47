"""Ends TLS first and waits for the relay's answer, as asyncio and Java do. Says `closed` when it came.

close.py HOST:PORT CA [--request | --stream PATH BEARER]"""

import asyncio
import ssl
import sys

import http2

address, ca = sys.argv[1:3]
host, port = address.rsplit(":", 1)


def text(value):
    return http2._text(value)


def head(method, path, fields, end):
    pseudo = [(":method", method), (":scheme", "https"), (":authority", address), (":path", path)]
    block = b"".join(b"\x00" + text(name) + text(value) for name, value in pseudo + fields)
    return http2.frame(http2.HEADERS, http2.END_HEADERS | (1 if end else 0), 1, block)


async def main():
    context = ssl.create_default_context(cafile=ca)
    context.set_alpn_protocols(["h2"])
    reader, writer = await asyncio.open_connection(host, int(port), ssl=context, ssl_shutdown_timeout=15)
    writer.write(http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0))
    if sys.argv[3:4] == ["--stream"]:
        writer.write(head("POST", sys.argv[4], [("authorization", f"bearer {sys.argv[5]}")], False))
        # The first lines of the stream: the relay knows who listens, and has no more to say.
        await reader.readuntil(b'"empty"}\n')
    else:
        # SETTINGS acknowledged is the last that an idle connection hears. What came after our own
        # end would be an error to this client.
        await reader.readuntil(http2.frame(http2.SETTINGS, 1, 0))
    writer.close()
    await writer.wait_closed()
    print("closed", flush=True)


asyncio.run(main())
