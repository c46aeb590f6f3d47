// A push-relay of a test's own: started on free ports, with a clock that moves when told.
//
// Node alone is all it needs. PUSHRELAY names the binary (default: pushrelay on the PATH).

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import http2 from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const binary = process.env.PUSHRELAY ?? "pushrelay";

/** A wait was not met; the message says why, and until when a push is held. */
export class NotMet extends Error {}

export class Relay {
  /** Starts one; `close()` it in the end. */
  static async start() {
    const relay = new Relay();
    try {
      await relay.#start();
    } catch (problem) {
      await relay.close();
      throw problem;
    }
    return relay;
  }

  async #start() {
    this.state = mkdtempSync(join(tmpdir(), "pushrelay-"));
    const listeners = ["provider", "device", "admin"]
      .flatMap((name) => [`--${name}`, "127.0.0.1:0"]);
    this.process = spawn(
      binary,
      ["serve", "--state", this.state, "--clock", "virtual", "--store", "memory",
        "--log-level", "error", ...listeners],
      { stdio: ["ignore", "pipe", "inherit"] });
    this.ended = once(this.process, "exit").catch(() => {});
    // Its one line says that it listens, and where; its end instead, that it does not.
    const lines = createInterface({ input: this.process.stdout });
    const [line] = await Promise.race([once(lines, "line"), this.ended.then(() => [])]);
    if (!line) throw new Error(`${binary} did not start; PUSHRELAY names the binary`);
    this.addresses = Object.fromEntries(line.split(" ").slice(1).map((word) => word.split("=")));
    this.token = readFileSync(join(this.state, "admin.token"), "utf8").trim();
    this.jwt = execFileSync(binary, ["jwt", "--state", this.state], { encoding: "utf8" }).trim();
    const ca = readFileSync(join(this.state, "ca.pem"));
    this.provider = http2.connect(`https://${this.addresses.provider}`, { ca });
    this.device = http2.connect(`https://${this.addresses.device}`, { ca });
  }

  async close() {
    this.provider?.destroy();
    this.device?.destroy();
    this.process?.kill();
    await this.ended;
    rmSync(this.state, { recursive: true, force: true });
  }

  /** A phone with an app, that listens as `curl -N …/stream` does. */
  async phone(topic) {
    const { device, secret } = (await ask(this.device, "POST", "/v1/devices")).json;
    const authorization = `bearer ${secret}`;
    const path = `/v1/devices/${device}`;
    const app = await ask(this.device, "PUT", `${path}/apps/${topic}`, { authorization });
    const stream = this.device.request({ ":path": `${path}/stream`, authorization });
    const lines = createInterface({ input: stream })[Symbol.asyncIterator]();
    const next = async () => JSON.parse((await lines.next()).value);
    const hello = await next();
    if (hello.type !== "hello") throw new Error(`instead of hello: ${JSON.stringify(hello)}`);
    return {
      id: device,
      token: app.json.token,
      /** The next notification that it gets. */
      async notification() {
        for (;;) {
          const line = await next();
          if (line.type === "notification") return line;
        }
      },
    };
  }

  /** Pushes as a provider does; answers status, the push's id, and the reason of a refusal. */
  async push(phone, payload, headers = {}) {
    const answer = await ask(
      this.provider, "POST", `/3/device/${phone.token}`,
      { authorization: `bearer ${this.jwt}`, ...headers }, JSON.stringify(payload));
    return {
      status: answer.headers[":status"], id: answer.headers["apns-unique-id"],
      reason: answer.json?.reason,
    };
  }

  /** Asks the admin API; docs/ADMIN.md lists its routes. */
  async call(method, path, body) {
    const response = await fetch(`http://${this.addresses.admin}${path}`, {
      method, body: body && JSON.stringify(body), signal: AbortSignal.timeout(60_000),
      headers: { authorization: `bearer ${this.token}`, "content-type": "application/json" },
    });
    return { status: response.status, json: await response.json() };
  }

  /** Waits until it has happened; NotMet says why not. */
  async wait(what, push, options = {}) {
    const expect = { what, push };
    const { status, json } = await this.call("POST", "/v1/wait", { expect, ...options });
    if (status !== 200) throw new NotMet(json.message);
    return json;
  }

  /** Moves the clock, such as by "1h"; answers what has fired meanwhile. */
  async advance(by) {
    const { status, json } = await this.call("POST", "/v1/clock/advance", { by });
    if (status !== 200) throw new Error(json.message);
    return json;
  }
}

/** One request over HTTP/2. */
async function ask(session, method, path, headers = {}, body = undefined) {
  const request = session.request({ ":method": method, ":path": path, ...headers });
  request.end(body);
  const [answer] = await once(request, "response");
  let text = "";
  request.setEncoding("utf8");
  for await (const piece of request) text += piece;
  return { headers: answer, json: text ? JSON.parse(text) : undefined };
}
