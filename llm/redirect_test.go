package llm

import (
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
)

// An endpoint is named by the configuration, so it may be on this machine; where it points is not. No
// kind of redirect is followed, whatever is asked, so that neither key nor prompt goes elsewhere.
func TestEndpointRedirectsLeadNowhere(t *testing.T) {
	inside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var connections atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := inside.Accept()
			if err != nil {
				return // closed
			}
			connections.Add(1)
			conn.Close()
		}
	}()
	t.Cleanup(func() { inside.Close(); <-done })
	at := inside.Addr().String()
	_, port, _ := net.SplitHostPort(at)
	var reply atomic.Pointer[stubReply]
	s := serve(t, func(int, string) stubReply { return *reply.Load() })
	endpoints := map[string]Endpoint{}
	for _, p := range Profiles {
		endpoints[p.Name] = Endpoint{Provider: ProviderOpenAI, BaseURL: s.URL + "/v1", Profile: p.Name, KeyEnv: "KEY"}
	}
	c := client(t, s, Options{Endpoints: endpoints, Getenv: func(string) string { return "secret-of-the-endpoint" }})
	want := 0
	for _, to := range []string{"http://" + at + "/", "http://2130706433:" + port + "/v1", "http://[::ffff:127.0.0.1]:" + port + "/v1/chat/completions", "http://localhost:" + port} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			leads := failing(status, "", "Location", to)
			reply.Store(&leads)
			for _, p := range Profiles {
				q := ask(1)
				q.Endpoint = p.Name
				_, completed := c.Complete(t.Context(), q)
				_, embedded := c.Embed(t.Context(), EmbedRequest{Endpoint: p.Name, Model: "stub", Texts: []string{"a"}})
				_, listed := c.Models(t.Context(), p.Name)
				for what, err := range map[string]error{"completion": completed, "vectors": embedded, "models": listed} {
					var e *Error
					if !errors.As(err, &e) || e.Reason != ReasonRejected || e.Status != status || strings.Contains(e.Error(), "secret-of") {
						t.Errorf("%s of %s after %d to %s: %v, want it rejected", what, p.Name, status, to, err)
					}
				}
				if want += 3; s.requests() != want {
					t.Fatalf("%s after %d to %s: %d requests, want %d", p.Name, status, to, s.requests(), want)
				}
			}
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("the listener counts %d connections, want 0", n)
	}
}
