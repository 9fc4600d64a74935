package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPublicAddress(t *testing.T) {
	public := []string{"93.184.216.34", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:2800:220:1::1", "::ffff:8.8.8.8", "192.1.0.1", "169.253.1.1"}
	refused := []string{
		"127.0.0.1", "127.255.0.9", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
		"169.254.169.254", "100.64.0.1", "100.100.100.200", "192.0.0.192", "198.18.0.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "168.63.129.16",
		"::", "::1", "fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1",
		"::ffff:127.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::8.8.8.8", "64:ff9b:1::1", "2002:7f00:1::", "2001::1", "2001:db8::1",
	}
	for _, want := range []bool{true, false} {
		list := refused
		if want {
			list = public
		}
		for _, s := range list {
			if got := publicAddress(netip.MustParseAddr(s)); got != want {
				t.Errorf("publicAddress(%s) = %v, want %v", s, got, want)
			}
		}
	}
}

// listener counts the connections to a port of this machine.
func listener(t *testing.T) (port string, connections *atomic.Int32) {
	return countingListener(t, "127.0.0.1:0")
}

// countingListener takes every connection to an address, counts it and closes it.
func countingListener(t *testing.T, address string) (port string, connections *atomic.Int32) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	connections = &atomic.Int32{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed
			}
			connections.Add(1)
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port, connections
}

func TestHD24BlockedAddresses(t *testing.T) {
	port, connections := listener(t)
	w := newWeb(t)
	w.pages["ok.example"] = shows("ok")
	for path, to := range map[string]string{
		"/to-metadata": "http://169.254.169.254/latest/meta-data/", "/to-loopback": "http://127.0.0.1:" + port + "/", "/to-number": "http://2130706433:" + port + "/",
		"/to-file": "file:///etc/passwd", "/to-name": "http://rebound.test:" + port + "/",
	} {
		w.pages["ok.example"+path] = redirects(302, to)
	}
	c := w.client(t, memory(t))
	var lookups atomic.Int32
	c.guard.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		lookups.Add(1)
		switch host {
		case "rebound.test", "inner.test":
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		case "mapped.test":
			return []netip.Addr{netip.MustParseAddr("::ffff:10.0.0.1"), netip.MustParseAddr("fd00::1")}, nil
		}
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	tests := []struct{ url, reason string }{
		{"http://169.254.169.254/latest/meta-data/", ReasonBlockedAddress},
		{"http://127.0.0.1:" + port + "/", ReasonBlockedAddress},
		{"http://[::1]:" + port + "/", ReasonBlockedAddress},
		{"http://2130706433:" + port + "/", ReasonBlockedAddress},
		{"http://0x7f000001:" + port + "/", ReasonBlockedAddress},
		{"http://0177.1:" + port + "/", ReasonBlockedAddress},
		{"http://127.1:" + port + "/", ReasonBlockedAddress},
		{"http://%31%32%37.0.0.1:" + port + "/", ReasonBlockedAddress},
		{"http://１２７.0.0.1:" + port + "/", ReasonBlockedAddress},
		{"http://localhost:" + port + "/", ReasonBlockedAddress},
		{"http://LOCALHOST.:" + port + "/", ReasonBlockedAddress},
		{"http://[::ffff:127.0.0.1]:" + port + "/", ReasonBlockedAddress},
		{"http://[64:ff9b::7f00:1]:" + port + "/", ReasonBlockedAddress},
		{"http://0:" + port + "/", ReasonBlockedAddress},
		{"http://inner.test:" + port + "/", ReasonBlockedAddress},
		{"http://mapped.test/", ReasonBlockedAddress},
		{"http://" + w.addr() + "/", ReasonBlockedAddress}, // reached as a listed host only
		{"file:///etc/passwd", ReasonBadScheme},
		{"ftp://ok.example/x", ReasonBadScheme},
		{"gopher://127.0.0.1:" + port + "/", ReasonBadScheme},
		{"javascript:alert(1)", ReasonBadScheme},
		{"data:text/html,x", ReasonBadScheme},
		{"http://", ReasonBadURL},
		{"/relative", ReasonBadURL},
		{"http://user:secret@ok.example/", ReasonBadURL},
		{"http://ok.example/to-metadata", ReasonBlockedAddress},
		{"http://ok.example/to-loopback", ReasonBlockedAddress},
		{"http://ok.example/to-number", ReasonBlockedAddress},
		{"http://ok.example/to-name", ReasonBlockedAddress},
		{"http://ok.example/to-file", ReasonBadScheme},
	}
	for _, tt := range tests {
		_, err := c.Get(t.Context(), Request{URL: tt.url})
		var e *Error
		if !errors.As(err, &e) || e.Reason != tt.reason {
			t.Errorf("Get(%s) = %v, want reason %s", tt.url, err, tt.reason)
			continue
		}
		if want := tt.reason; want != ReasonBadURL && e.Excluded() != want {
			t.Errorf("Get(%s) is no exclusion", tt.url)
		}
		if strings.Contains(e.Error(), "secret") {
			t.Errorf("the error tells the password: %v", e)
		}
		if _, err := c.HTTP().Get(tt.url); err == nil {
			t.Errorf("the client for crawlers got %s", tt.url)
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("the listener counts %d connections, want 0", n)
	}
	// The run goes on.
	if _, err := c.Get(t.Context(), Request{URL: "http://ok.example/page"}); err != nil {
		t.Errorf("Get of an ordinary page: %v", err)
	}
	// A blocked name is looked up once per request for its robots.txt, never again for a retry.
	lookups.Store(0)
	if _, err := c.Get(t.Context(), Request{URL: "http://rebound.test:" + port + "/again"}); err == nil {
		t.Error("no error")
	}
	if n := lookups.Load(); n > 1 {
		t.Errorf("a blocked name was looked up %d times, want no retry", n)
	}
}

// The connection goes to the address that was checked, whatever the name says the next time.
func TestGuardDialsWhatItChecked(t *testing.T) {
	g := newGuard(Options{Contact: "x"})
	answersOf := [][]string{{"10.0.0.1", "2606:2800:220::1", "93.184.216.34"}, {"127.0.0.1"}}
	g.lookup = func(context.Context, string) ([]netip.Addr, error) {
		var out []netip.Addr
		for _, s := range answersOf[0] {
			out = append(out, netip.MustParseAddr(s))
		}
		answersOf = answersOf[1:]
		return out, nil
	}
	var dialled []string
	g.dial = func(_ context.Context, _, addr string) (net.Conn, error) {
		dialled = append(dialled, addr)
		return nil, fmt.Errorf("dial %s: refused", addr)
	}
	if _, err := g.dialContext(t.Context(), "tcp", "twoface.test:443"); err == nil {
		t.Error("no error")
	}
	if diff := cmp.Diff([]string{"93.184.216.34:443", "[2606:2800:220::1]:443"}, dialled); diff != "" {
		t.Errorf("dialled (-want +got):\n%s", diff)
	}
	_, err := g.dialContext(t.Context(), "tcp", "twoface.test:443")
	wantReason(t, err, ReasonBlockedAddress)
}

func TestAllowPrivateIsExact(t *testing.T) {
	w := newWeb(t)
	w.pages[w.addr()] = shows("private")
	other, connections := listener(t)
	c := w.client(t, memory(t), func(o *Options) { o.Resolve, o.AllowPrivate, o.Contact = nil, []string{w.addr()}, "" })
	page, err := c.Get(t.Context(), Request{URL: "http://" + w.addr() + "/x"})
	if err != nil {
		t.Fatal(err)
	}
	if page.Status != http.StatusOK {
		t.Errorf("status %d", page.Status)
	}
	_, port, _ := net.SplitHostPort(w.addr())
	for url, reason := range map[string]string{
		"http://127.0.0.1:" + other + "/": ReasonBlockedAddress, "http://localhost:" + port + "/": ReasonBlockedAddress,
		"http://127.0.0.2:" + port + "/": ReasonBlockedAddress, "https://www.check.test/": ReasonNoContact,
	} {
		_, err := c.Get(t.Context(), Request{URL: url})
		wantReason(t, err, reason)
	}
	if connections.Load() != 0 {
		t.Error("a port that is not listed was dialled")
	}
}

func TestResolve(t *testing.T) {
	g := newGuard(Options{Resolve: map[string]string{"One.example": "127.0.0.1:1", "*.two.example": "127.0.0.1:2"}})
	for host, want := range map[string]string{
		"one.example": "127.0.0.1:1", "a.two.example": "127.0.0.1:2", "a.b.two.example": "127.0.0.1:2", "two.example": "", "a.one.example": "", "xtwo.example": "",
	} {
		if got, _ := g.elsewhere(host); got != want {
			t.Errorf("elsewhere(%s) = %q, want %q", host, got, want)
		}
	}
}
