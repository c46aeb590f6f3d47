"""The same for tests with asyncio: each call goes on in a thread of its own."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

from . import relay as sync
from .relay import Fault, Policy, Subject
from .values import Endpoint, Phone, Push

_Result = TypeVar("_Result")


class Relay:
    """`pushrelay.Relay` with methods to await; of one that exists, or a new one."""

    def __init__(self, relay: sync.Relay | None = None) -> None:
        self.sync = relay or sync.Relay()
        # More than the relay has waits: asyncio's own are few, and a wait keeps one for minutes.
        self._threads = ThreadPoolExecutor(max_workers=512, thread_name_prefix="pushrelay")

    async def _run(
        self, call: Callable[..., _Result], /, *arguments: Any, **named: Any
    ) -> _Result:
        work = partial(contextvars.copy_context().run, call, *arguments, **named)
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Waits for what is under way, such as waits of tasks that were cancelled."""
        self._threads.shutdown()

    async def __aenter__(self) -> Relay:
        await self._run(self.sync.__enter__)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._run(self.sync.__exit__, kind, error, trace)

    @property
    def endpoint(self) -> Endpoint:
        return self.sync.endpoint

    @property
    def admin(self) -> str:
        return self.sync.admin

    @property
    def is_joined(self) -> bool:
        return self.sync.is_joined

    async def leave(self) -> None:
        await self._run(self.sync.leave)

    async def lives(self, limit: int = 50) -> list[str]:
        return await self._run(self.sync.lives, limit)

    async def call(self, method: str, path: str, body: object = None) -> Any:
        return await self._run(self.sync.call, method, path, body)

    async def phone(
        self,
        topic: str,
        name: str | None = None,
        *,
        simulated: bool = False,
        activities: Iterable[str] = (),
        frequent_updates: bool = False,
        channels: Iterable[str] = (),
    ) -> Phone:
        return await self._run(
            self.sync.phone,
            topic,
            name,
            simulated=simulated,
            activities=activities,
            frequent_updates=frequent_updates,
            channels=channels,
        )

    async def activity(self, phone: Phone, which: int | str) -> Phone:
        return await self._run(self.sync.activity, phone, which)

    async def do(self, phone: Phone, verb: str, *words: object, **members: object) -> list[str]:
        return await self._run(self.sync.do, phone, verb, *words, **members)

    async def state(self, phone: Phone) -> dict[str, Any]:
        return await self._run(self.sync.state, phone)

    async def app(self, phone: Phone, topic: str) -> Phone:
        return await self._run(self.sync.app, phone, topic)

    async def push(self, phone: Phone, payload: object, **headers: Any) -> Push:
        return await self._run(self.sync.push, phone, payload, **headers)

    async def wait(self, what: str, push: Subject = None, **limits: Any) -> Any:
        return await self._run(self.sync.wait, what, push, **limits)

    async def never(self, what: str, push: Subject = None, **limits: Any) -> Any:
        return await self._run(self.sync.never, what, push, **limits)

    async def requests(
        self, payload: str | Iterable[str] | None = None, **filters: Any
    ) -> list[dict[str, Any]]:
        return await self._run(self.sync.requests, payload, **filters)

    async def policy(self, name: Policy, phone: Phone | None = None) -> None:
        await self._run(self.sync.policy, name, phone)

    def fault(self, name: str, at: str, do: dict[str, object], **more: object) -> _Begun:
        """To be awaited, or for `async with`, which ends it."""
        return _Begun(self, name, at, do, more)

    async def advance(self, by: str) -> Any:
        return await self._run(self.sync.advance, by)

    async def checkpoint(self, name: str) -> None:
        await self._run(self.sync.checkpoint, name)

    async def restore(self, name: str) -> None:
        await self._run(self.sync.restore, name)

    async def drop(self, name: str) -> None:
        await self._run(self.sync.drop, name)

    async def channels(self) -> list[dict[str, Any]]:
        return await self._run(self.sync.channels)

    async def log(self, push: Push | str) -> str:
        return await self._run(self.sync.log, push)


class _Begun:
    """A fault about to begin. Python warns of one that nobody awaits, as of a coroutine."""

    def __init__(self, relay: Relay, *named: Any) -> None:
        self._relay = relay
        name, at, do, more = named
        self._beginning = relay._run(relay.sync.fault, name, at, do, **more)
        self._fault: Fault | None = None

    def __await__(self) -> Generator[Any, None, Fault]:
        return self._beginning.__await__()

    async def __aenter__(self) -> Fault:
        self._fault = await self._beginning
        return self._fault

    async def __aexit__(self, *error: object) -> None:
        if self._fault:
            await self._relay._run(self._fault.end)
