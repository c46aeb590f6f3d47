// Why the fourth silent push waits, and that it arrives: node --test

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { NotMet, Relay } from "./relay.mjs";

const topic = "com.example.app";
const silent = { "apns-topic": topic, "apns-push-type": "background", "apns-priority": "5" };

let relay;
before(async () => { relay = await Relay.start(); });
after(() => relay?.close());

const timeout = 60_000;

test("the fourth silent push is held and arrives within the hour", { timeout }, async () => {
  const phone = await relay.phone(topic);
  const pushes = [];
  for (const n of [1, 2, 3, 4]) {
    const { status, id } = await relay.push(phone, { aps: { "content-available": 1 }, n }, silent);
    assert.equal(status, 200);
    pushes.push(id);
  }
  for (const push of pushes.slice(0, 3)) {
    await relay.wait("delivered", push);
    assert.equal((await phone.notification()).via, "direct");
  }

  const fourth = pushes[3];
  await assert.rejects(relay.wait("delivered", fourth, { timeout: "0s" }), (problem) =>
    problem instanceof NotMet && /app budget: 0 of 3 left/.test(problem.message));
  const { json: life } = await relay.call("GET", `/v1/notifications/${fourth}`);
  assert.equal(life.state, "stored");
  assert.equal(life.steps.at(-1).limit, "app-budget");

  await relay.advance("1h");
  await relay.wait("delivered", fourth);
  const { via, payload } = await phone.notification();
  assert.deepEqual([via, payload.n], ["refill", 4]);
});

test("a push without a topic is refused, and the reason is Apple's", { timeout }, async () => {
  const phone = await relay.phone("com.example.other");
  const { status, reason } = await relay.push(phone, { aps: { alert: "Hello" } });
  assert.deepEqual([status, reason], [400, "MissingTopic"]);
});
