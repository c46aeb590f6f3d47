"""APNs clients as they are on PyPI, pointed at the relay; each has another HTTP/2 stack under it.

None has settings for host, port and CA at once: what is set below, in classes and modules of
theirs, is all that a test has to set (examples/clients has the same lines for copying).
"""

import asyncio
import ssl
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from pushrelay import Endpoint, Phone, Relay

SILENT, ALERT = {"content-available": 1}, {"alert": "Hello"}
# Well formed, and of no phone.
UNKNOWN = "ab" * 32

# Pushes an alert or a silent push to a token; answers the word for a refusal, else "".
Send = Callable[[str, dict[str, Any]], str]


def aioapns_client(endpoint: Endpoint, topic: str, monkeypatch: pytest.MonkeyPatch) -> Send:
    import aioapns
    from aioapns.connection import APNsProductionClientProtocol

    # It has an argument for the CA only.
    monkeypatch.setattr(APNsProductionClientProtocol, "APNS_SERVER", endpoint.host)
    monkeypatch.setattr(APNsProductionClientProtocol, "APNS_PORT", endpoint.port)

    async def send(token: str, aps: dict[str, Any]) -> str:
        client = aioapns.APNs(
            key=endpoint.key.read_text(),
            key_id=endpoint.key_id,
            team_id=endpoint.team_id,
            topic=topic,
            ssl_context=ssl.create_default_context(cafile=str(endpoint.ca)),
        )
        silent = aps == SILENT
        request = aioapns.NotificationRequest(
            device_token=token,
            message={"aps": aps},
            push_type=aioapns.PushType.BACKGROUND if silent else aioapns.PushType.ALERT,
            priority=5 if silent else None,
        )
        result = await client.send_notification(request)
        return "" if result.is_successful else str(result.description)

    return lambda token, aps: asyncio.run(send(token, aps))


def pyapns_client(endpoint: Endpoint, topic: str, monkeypatch: pytest.MonkeyPatch) -> Send:
    from pyapns_client import APNSClient, IOSNotification, IOSPayload, IOSPayloadAlert
    from pyapns_client.exceptions import APNSException

    # It has an argument for the CA only.
    urls = {APNSClient.MODE_PROD: f"https://{endpoint.host}:{endpoint.port}"}
    monkeypatch.setattr(APNSClient, "BASE_URLS", urls)

    def send(token: str, aps: dict[str, Any]) -> str:
        if aps == SILENT:
            payload, push_type, priority = IOSPayload(content_available=True), "background", "5"
        else:
            payload = IOSPayload(alert=IOSPayloadAlert(body=aps["alert"]))
            push_type, priority = "alert", "10"
        notification = IOSNotification(
            payload=payload, topic=topic, priority=priority, push_type=push_type
        )
        client = APNSClient(
            APNSClient.MODE_PROD,
            str(endpoint.ca),
            endpoint.key,
            endpoint.key_id,
            endpoint.team_id,
        )
        try:
            client.push(notification, token)
        except APNSException as refusal:
            return type(refusal).__name__
        finally:
            client.close()
        return ""

    return send


def kalyke_client(endpoint: Endpoint, topic: str, monkeypatch: pytest.MonkeyPatch) -> Send:
    from kalyke import ApnsClient, ApnsConfig, ApnsPriority, ApnsPushType, Payload
    from kalyke.exceptions import ApnsProviderException

    # It has no argument for a CA; httpx2 under it trusts what this names.
    monkeypatch.setenv("SSL_CERT_FILE", str(endpoint.ca))

    class Client(ApnsClient):
        _base_url = f"https://{endpoint.host}:{endpoint.port}"

    client = Client(
        use_sandbox=False,
        team_id=endpoint.team_id,
        auth_key_id=endpoint.key_id,
        auth_key_filepath=endpoint.key,
    )

    def send(token: str, aps: dict[str, Any]) -> str:
        if aps == SILENT:
            payload = Payload(content_available=True)
            config = ApnsConfig(
                topic, push_type=ApnsPushType.BACKGROUND, priority=ApnsPriority.BASED_ON_POWER
            )
        else:
            payload, config = Payload(alert=aps["alert"]), ApnsConfig(topic)
        try:
            asyncio.run(client.send_message(token, payload, config))
        except ApnsProviderException as refusal:
            return type(refusal).__name__
        return ""

    return send


def apns2_client(endpoint: Endpoint, topic: str, monkeypatch: pytest.MonkeyPatch) -> Send:
    import hyper.tls
    from apns2.client import APNsClient, NotificationPriority
    from apns2.credentials import TokenCredentials
    from apns2.errors import APNsException
    from apns2.payload import Payload

    # It passes nothing on to hyper's TLS, which makes one context for all and keeps it.
    monkeypatch.setattr(hyper.tls, "cert_loc", str(endpoint.ca))
    monkeypatch.setattr(hyper.tls, "_context", None)
    monkeypatch.setattr(APNsClient, "LIVE_SERVER", endpoint.host)
    monkeypatch.setattr(APNsClient, "DEFAULT_PORT", endpoint.port)
    credentials = TokenCredentials(str(endpoint.key), endpoint.key_id, endpoint.team_id)

    def send(token: str, aps: dict[str, Any]) -> str:
        # The type it infers from the payload.
        if aps == SILENT:
            payload, priority = Payload(content_available=True), NotificationPriority.Delayed
        else:
            payload, priority = Payload(alert=aps["alert"]), NotificationPriority.Immediate
        try:
            APNsClient(credentials).send_notification(token, payload, topic, priority)
        except APNsException as refusal:
            return type(refusal).__name__
        return ""

    return send


CLIENTS = [
    pytest.param(aioapns_client, "BadDeviceToken", id="aioapns"),
    pytest.param(pyapns_client, "BadDeviceTokenException", id="pyapns-client"),
    pytest.param(kalyke_client, "BadDeviceToken", id="kalyke-apns"),
    pytest.param(
        apns2_client,
        "BadDeviceToken",
        id="apns2-up",
        marks=pytest.mark.skipif(
            sys.version_info >= (3, 12), reason="hyper under apns2-up needs ssl.match_hostname"
        ),
    ),
]


# What the libraries do with their own dependencies is theirs to mend.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("client", "refusal"), CLIENTS)
def test_a_client_of_pypi_pushes_to_it(
    client: Callable[[Endpoint, str, pytest.MonkeyPatch], Send],
    refusal: str,
    push_relay: Relay,
    apns_endpoint: Endpoint,
    phone: Phone,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    send = client(apns_endpoint, phone.topic, monkeypatch)

    assert send(phone.token, ALERT) == ""
    push_relay.wait("delivered", phone, kind="visible")
    push_relay.never("delivered", phone, kind="silent")

    assert send(phone.token, SILENT) == ""
    push_relay.wait("delivered", phone, kind="silent")

    refused = push_relay.call("GET", "/v1/refusals")["refusals"]
    assert send(UNKNOWN, ALERT) == refusal
    # Of one request: none of them asks again.
    assert len(push_relay.call("GET", "/v1/refusals")["refusals"]) == len(refused) + 1


def test_a_channel_reaches_the_phones_that_subscribe(push_relay: Relay) -> None:
    """A provider's own code makes the channel and publishes: here httpx."""
    import httpx

    endpoint, topic = push_relay.endpoint, "com.example.scores"
    words = [push_relay._executable, "jwt", "--state", str(endpoint.ca.parent)]
    token = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    trust = ssl.create_default_context(cafile=str(endpoint.ca))
    headers = {"authorization": f"bearer {token}"}
    with httpx.Client(http2=True, verify=trust, headers=headers) as client:
        made = client.post(
            f"https://{endpoint.host}:{endpoint.channels_port}/1/apps/{topic}/channels",
            json={"message-storage-policy": 1, "push-type": "LiveActivity"},
        )
        assert made.status_code == 201, made.text
        channel = made.headers["apns-channel-id"]
        phones = [push_relay.phone(topic, channels=[channel]) for _ in range(2)]
        assert len({phone.device for phone in phones}) == 2
        sent = client.post(
            f"https://{endpoint.host}:{endpoint.port}/4/broadcasts/apps/{topic}",
            headers={
                "apns-channel-id": channel,
                "apns-push-type": "liveactivity",
                "apns-expiration": "0",
            },
            json={
                "aps": {
                    "timestamp": 1,
                    "event": "update",
                    "content-state": {"score": 1},
                }
            },
        )
    assert sent.status_code == 200, sent.text
    found = [told for told in push_relay.channels() if told["channel"] == channel]
    assert [told["subscribers"] for told in found] == [2]
    assert [told["delivered"] for told in found] == [2]
