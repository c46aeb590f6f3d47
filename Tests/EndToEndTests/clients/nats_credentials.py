"""Makes what nats-server needs to know users by JWT, and the credentials of one user.

usage: nats_credentials.py FOLDER

Writes `engine.conf`, to be added to a server's configuration, `relay.creds`, and `stranger.creds` of
a user whom another account's key has signed, which the server must refuse.
"""

import base64
import json
import os
import sys
import time

import nkeys

PREFIXES = {
    "operator": nkeys.PREFIX_BYTE_OPERATOR,
    "account": nkeys.PREFIX_BYTE_ACCOUNT,
    "user": nkeys.PREFIX_BYTE_USER,
}


def pair(kind):
    return nkeys.from_seed(nkeys.encode_seed(os.urandom(32), PREFIXES[kind]))


def text(key):
    return bytes(key.public_key).decode()


def part(value):
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=")


def token(signer, subject, kind, more):
    """A JWT as NATS writes them (documentation, "JWT", "In Depth JWT Guide")."""
    claims = {
        "jti": base64.b32encode(os.urandom(32)).decode().rstrip("="),
        "iat": int(time.time()),
        "iss": text(signer),
        "name": kind,
        "sub": text(subject),
        "nats": {**more, "type": kind, "version": 2},
    }
    body = part({"typ": "JWT", "alg": "ed25519-nkey"}) + b"." + part(claims)
    return (body + b"." + part(signer.sign(body))).decode()


def credentials(account, user):
    jwt = token(account, user, "user", {"pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1})
    seed = bytes(user.seed).decode()
    return (
        f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )


def main():
    folder = sys.argv[1]
    operator, account, system = pair("operator"), pair("account"), pair("account")
    limits = {"subs": -1, "conn": -1, "leaf": -1, "imports": -1, "exports": -1, "data": -1}
    limits |= {"payload": -1, "wildcards": True}
    storage = {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}
    accounts = {
        text(account): token(operator, account, "account", {"limits": limits | storage}),
        text(system): token(operator, system, "account", {"limits": limits}),
    }
    lines = [f"operator: {token(operator, operator, 'operator', {})}"]
    lines += [f"system_account: {text(system)}", "resolver: MEMORY", "resolver_preload {"]
    lines += [f"  {name}: {jwt}" for name, jwt in accounts.items()]
    files = {
        "engine.conf": "\n".join([*lines, "}", ""]),
        "relay.creds": credentials(account, pair("user")),
        "stranger.creds": credentials(pair("account"), pair("user")),
    }
    for name, content in files.items():
        with open(os.open(os.path.join(folder, name), os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(content)


main()
