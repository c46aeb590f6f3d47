// Why the fourth silent push waits, and that it arrives: java PushTest.java
//
// A JDK of 17 or newer alone is all it needs. PUSHRELAY names the binary (default: pushrelay on the PATH).

import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

public class PushTest {
  static final String TOPIC = "com.example.app";

  public static void main(String[] arguments) throws Exception {
    try (Relay relay = new Relay()) {
      Phone phone = relay.phone(TOPIC);
      List<String> pushes = new ArrayList<>();
      for (int n = 1; n <= 4; n++) {
        HttpResponse<String> answer = relay.push(phone, "{\"aps\":{\"content-available\":1},\"n\":" + n + "}");
        check(answer.statusCode() == 200, answer.body());
        pushes.add(answer.headers().firstValue("apns-unique-id").orElseThrow());
      }
      for (String push : pushes.subList(0, 3)) {
        check(relay.await("delivered", push, "10s").statusCode() == 200, "not delivered");
      }
      HttpResponse<String> held = relay.await("delivered", pushes.get(3), "0s");
      check(held.statusCode() == 409 && held.body().contains("app budget: 0 of 3 left"), held.body());

      relay.call("POST", "/v1/clock/advance", "{\"by\":\"1h\"}");
      check(relay.await("delivered", pushes.get(3), "10s").statusCode() == 200, "it does not arrive");
      System.out.println("ok - the fourth silent push is held and arrives within the hour");
    }
  }

  static void check(boolean holds, String problem) {
    if (!holds) throw new AssertionError(problem);
  }

  /** A phone that listens; what is written to it counts as acknowledged. */
  record Phone(String device, String token, InputStream stream) {}

  /** The part to copy: a relay of a test's own, with a clock that moves when told. */
  static class Relay implements AutoCloseable {
    final String binary = System.getenv().getOrDefault("PUSHRELAY", "pushrelay");
    final Path state = Files.createTempDirectory("pushrelay-");
    final Map<String, String> addresses = new HashMap<>();
    final Process process;
    final String token, jwt;
    final HttpClient provider, admin;

    Relay() throws Exception {
      List<String> command = new ArrayList<>(List.of(
          binary, "serve", "--state", state.toString(), "--clock", "virtual", "--store", "memory",
          "--log-level", "error"));
      for (String name : List.of("provider", "device", "admin")) {
        command.addAll(List.of("--" + name, "127.0.0.1:0"));
      }
      process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
      // Its one line says that it listens, and where.
      String line = new BufferedReader(new InputStreamReader(process.getInputStream())).readLine();
      if (line == null) throw new IllegalStateException(binary + " did not start");
      for (String word : line.split(" ")) {
        String[] parts = word.split("=", 2);
        if (parts.length == 2) addresses.put(parts[0], parts[1]);
      }
      token = Files.readString(state.resolve("admin.token")).strip();
      Process signer = new ProcessBuilder(binary, "jwt", "--state", state.toString()).start();
      jwt = new String(signer.getInputStream().readAllBytes()).strip();

      // What a client library of yours is told, too: this certificate authority.
      KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
      trusted.load(null);
      try (InputStream ca = Files.newInputStream(state.resolve("ca.pem"))) {
        trusted.setCertificateEntry("relay", CertificateFactory.getInstance("X.509").generateCertificate(ca));
      }
      TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
      managers.init(trusted);
      SSLContext security = SSLContext.getInstance("TLS");
      security.init(null, managers.getTrustManagers(), null);
      provider = HttpClient.newBuilder().version(HttpClient.Version.HTTP_2).sslContext(security).build();
      admin = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    }

    @Override
    public void close() throws Exception {
      process.destroy();
      process.waitFor();
      try (var files = Files.walk(state)) {
        files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(java.io.File::delete);
      }
    }

    Phone phone(String topic) throws Exception {
      String device = member("device", call("POST", "/v1/devices", "").body());
      String app = call("PUT", "/v1/devices/" + device + "/apps/" + topic, "").body();
      HttpRequest stream = request("/v1/devices/" + device + "/stream").GET().build();
      InputStream lines = admin.send(stream, HttpResponse.BodyHandlers.ofInputStream()).body();
      return new Phone(device, member("token", app), lines);
    }

    /** Pushes as a provider does, over HTTP/2 with a provider token. */
    HttpResponse<String> push(Phone phone, String payload) throws Exception {
      // The certificate is for localhost.
      URI uri = URI.create("https://" + addresses.get("provider").replace("127.0.0.1", "localhost")
          + "/3/device/" + phone.token());
      HttpRequest request = HttpRequest.newBuilder(uri)
          .header("authorization", "bearer " + jwt).header("apns-topic", TOPIC)
          .header("apns-push-type", "background").header("apns-priority", "5")
          .POST(HttpRequest.BodyPublishers.ofString(payload)).build();
      return provider.send(request, HttpResponse.BodyHandlers.ofString());
    }

    /** 200 when it has happened; 409 with the reason when not. */
    HttpResponse<String> await(String what, String push, String timeout) throws Exception {
      return call("POST", "/v1/wait", "{\"expect\":{\"what\":\"" + what + "\",\"push\":\"" + push
          + "\"},\"timeout\":\"" + timeout + "\"}");
    }

    /** Asks the admin API; docs/ADMIN.md lists its routes. */
    HttpResponse<String> call(String method, String path, String body) throws Exception {
      HttpRequest request = request(path).timeout(Duration.ofMinutes(1))
          .method(method, HttpRequest.BodyPublishers.ofString(body)).build();
      return admin.send(request, HttpResponse.BodyHandlers.ofString());
    }

    HttpRequest.Builder request(String path) {
      return HttpRequest.newBuilder(URI.create("http://" + addresses.get("admin") + path))
          .header("authorization", "bearer " + token).header("content-type", "application/json");
    }

    static String member(String name, String json) {
      var found = Pattern.compile("\"" + name + "\":\"([^\"]*)\"").matcher(json);
      check(found.find(), json);
      return found.group(1);
    }
  }
}
