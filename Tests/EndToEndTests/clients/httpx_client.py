"""httpx over HTTP/2 with nothing set: it finds proxy and CA in the environment, as it always does."""

import time

import httpx
import jwt
from settings import GONE, GOOD, KEY, KEY_ID, TEAM_ID, UNKNOWN

with open(KEY) as file:
    claims = {"iss": TEAM_ID, "iat": int(time.time())}
    bearer = jwt.encode(claims, file.read(), algorithm="ES256", headers={"kid": KEY_ID})

with httpx.Client(http2=True) as client:
    for server in "https://api.push.apple.com", "https://api.sandbox.push.apple.com:2197":
        for token, topic in GOOD, UNKNOWN, GONE:
            answer = client.post(
                f"{server}/3/device/{token}", json={"aps": {"alert": "Hello from httpx"}},
                headers={"authorization": f"bearer {bearer}", "apns-topic": topic},
            )
            assert answer.http_version == "HTTP/2"
            print("accepted" if answer.status_code == 200 else answer.json()["reason"])
    try:
        client.get("https://example.com/")
    except httpx.ProxyError as refusal:
        print(refusal)
