// Why the fourth silent push waits, and that it arrives: go test
//
// Go's standard library alone is all it needs. PUSHRELAY names the binary (default: pushrelay on the
// PATH).
package pushrelay

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const topic = "com.example.app"

func TestTheFourthIsHeldAndArrivesWithinTheHour(t *testing.T) {
	relay := start(t)
	token := relay.phone(t)
	var pushes []string
	for n := 1; n <= 4; n++ {
		answer := relay.push(t, token, fmt.Sprintf(`{"aps":{"content-available":1},"n":%d}`, n))
		if answer.StatusCode != 200 || answer.ProtoMajor != 2 {
			t.Fatal(answer.Status, answer.Proto)
		}
		pushes = append(pushes, answer.Header.Get("apns-unique-id"))
	}
	for _, push := range pushes[:3] {
		relay.wait(t, 200, push, "10s")
	}
	if why := relay.wait(t, 409, pushes[3], "0s"); !strings.Contains(why, "app budget: 0 of 3 left") {
		t.Error(why)
	}
	relay.call(t, "POST", "/v1/clock/advance", `{"by":"1h"}`)
	relay.wait(t, 200, pushes[3], "10s")
}

// The part to copy: a relay of a test's own, with a clock that moves when told.
type relay struct {
	addresses  map[string]string
	token, jwt string
	provider   http.Client
}

func start(t *testing.T) *relay {
	binary := os.Getenv("PUSHRELAY")
	if binary == "" {
		binary = "pushrelay"
	}
	state := t.TempDir()
	command := exec.Command(binary, "serve", "--state", state, "--clock", "virtual", "--store", "memory",
		"--log-level", "error", "--provider", "127.0.0.1:0", "--device", "127.0.0.1:0",
		"--admin", "127.0.0.1:0")
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		_ = command.Wait()
	})
	// Its one line says that it listens, and where.
	line, err := bufio.NewReader(output).ReadString('\n')
	must(t, err)
	r := &relay{addresses: map[string]string{}}
	for _, word := range strings.Fields(line) {
		if name, address, found := strings.Cut(word, "="); found {
			r.addresses[name] = address
		}
	}
	r.token = strings.TrimSpace(string(read(t, filepath.Join(state, "admin.token"))))
	jwt, err := exec.Command(binary, "jwt", "--state", state).Output()
	must(t, err)
	r.jwt = strings.TrimSpace(string(jwt))
	// What a client library of yours is told, too: this certificate authority.
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(read(t, filepath.Join(state, "ca.pem")))
	r.provider.Transport = &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: authorities},
	}
	return r
}

// A phone that listens, and its token; what is written to it counts as acknowledged.
func (r *relay) phone(t *testing.T) string {
	var device, app struct{ Device, Token string }
	must(t, json.Unmarshal([]byte(r.call(t, "POST", "/v1/devices", "")), &device))
	path := "/v1/devices/" + device.Device
	must(t, json.Unmarshal([]byte(r.call(t, "PUT", path+"/apps/"+topic, "")), &app))
	answer, err := http.DefaultClient.Do(r.request(t, "GET", path+"/stream", ""))
	must(t, err)
	go func() { _, _ = io.Copy(io.Discard, answer.Body) }()
	return app.Token
}

// Pushes as a provider does, over HTTP/2 with a provider token.
func (r *relay) push(t *testing.T, token, payload string) *http.Response {
	request, err := http.NewRequest("POST", "https://"+r.addresses["provider"]+"/3/device/"+token,
		strings.NewReader(payload))
	must(t, err)
	for name, value := range map[string]string{"authorization": "bearer " + r.jwt, "apns-topic": topic,
		"apns-push-type": "background", "apns-priority": "5"} {
		request.Header.Set(name, value)
	}
	answer, err := r.provider.Do(request)
	must(t, err)
	_ = answer.Body.Close()
	return answer
}

// Waits until the push is delivered; what it says when that is not to come.
func (r *relay) wait(t *testing.T, status int, push, timeout string) string {
	body := fmt.Sprintf(`{"expect":{"what":"delivered","push":"%s"},"timeout":"%s"}`, push, timeout)
	answer, err := http.DefaultClient.Do(r.request(t, "POST", "/v1/wait", body))
	must(t, err)
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	if answer.StatusCode != status {
		t.Fatal(string(text))
	}
	return string(text)
}

// Asks the admin API; docs/ADMIN.md lists its routes.
func (r *relay) call(t *testing.T, method, path, body string) string {
	answer, err := http.DefaultClient.Do(r.request(t, method, path, body))
	must(t, err)
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	if answer.StatusCode >= 300 {
		t.Fatal(string(text))
	}
	return string(text)
}

func (r *relay) request(t *testing.T, method, path, body string) *http.Request {
	request, err := http.NewRequest(method, "http://"+r.addresses["admin"]+path, bytes.NewBufferString(body))
	must(t, err)
	request.Header.Set("authorization", "bearer "+r.token)
	request.Header.Set("content-type", "application/json")
	return request
}

func read(t *testing.T, path string) []byte {
	contents, err := os.ReadFile(path)
	must(t, err)
	return contents
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
