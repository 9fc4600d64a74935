package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// everywhere counts the connections to one port on every address of this machine, IPv6 included where
// there is any.
func everywhere(t *testing.T) (port string, connections *atomic.Int32) {
	return countingListener(t, ":0")
}

// forbiddenHosts are the spellings of hosts that lead to this machine or its network, by what is odd about them.
func forbiddenHosts(t *testing.T) map[string]string {
	hosts := map[string]string{
		"literal": "127.0.0.1", "other loopback": "127.8.9.10", "unspecified": "0.0.0.0", "decimal": "2130706433", "hex": "0x7f000001", "hex parts": "0x7f.0x0.0x0.0x1",
		"octal": "0177.0.0.1", "octal whole": "017700000001", "short": "127.1", "shortest": "0", "full width": "１２７.0.0.1", "escaped": "%31%32%37.0.0.1", "dot at the end": "127.0.0.1.",
		"IPv6": "[::1]", "IPv6 unspecified": "[::]", "IPv6 long": "[0:0:0:0:0:0:0:1]", "mapped": "[::ffff:127.0.0.1]", "mapped hex": "[::ffff:7f00:1]", "compatible": "[::127.0.0.1]", "NAT64": "[64:ff9b::7f00:1]", "6to4": "[2002:7f00:1::]",
		"localhost": "localhost", "localhost, written out": "LocalHost.", "below localhost": "a.localhost",
		"name": "inner.test", "name with a private address": "private.test", "name with a mapped address": "mapped.test", "name at ::1": "six.test", "name with several": "several.test",
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().IsPrivate() && p.Addr().Is4() {
			hosts["private address of this machine"] = p.Addr().String()
		}
	}
	return hosts
}

// resolver answers for the names under .test. A name that begins with turn is public at first and on
// this machine each further time.
type resolver struct {
	mu    sync.Mutex
	asked map[string]int
}

func (r *resolver) lookup(_ context.Context, host string) ([]netip.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked[host]++
	at := map[string][]string{
		"inner.test": {"127.0.0.1"}, "private.test": {"192.168.7.7", "10.1.1.1"}, "mapped.test": {"::ffff:127.0.0.1"}, "six.test": {"::1"}, "several.test": {"::1", "127.0.0.1", "fd00::1"},
	}[host]
	if strings.HasPrefix(host, "turn") {
		if at = []string{"127.0.0.1"}; r.asked[host] == 1 {
			at = []string{"93.184.216.34"}
		}
	}
	if at == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	var out []netip.Addr
	for _, s := range at {
		out = append(out, netip.MustParseAddr(s))
	}
	return out, nil
}

// forbiddenRoutes are the ways by which an address from outside comes to be requested. Each is given
// an address and the number of it, and returns the error.
func forbiddenRoutes(w *web) map[string]func(t *testing.T, c *Client, n int, to string) error {
	page := func(_ *testing.T, c *Client, _ int, to string) error {
		_, err := c.Get(context.Background(), Request{URL: to})
		return err
	}
	crawler := func(t *testing.T, c *Client, _ int, to string) error {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, to, nil)
		if err != nil {
			return err
		}
		resp, err := c.HTTP().Do(req)
		if err != nil {
			return err
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
		return nil
	}
	post := func(t *testing.T, c *Client, n int, to string) error {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, to, bytes.NewReader(fmt.Appendf(nil, "n=%d", n)))
		if err != nil {
			return err
		}
		resp, err := c.HTTP().Do(req)
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}
	routes := map[string]func(t *testing.T, c *Client, n int, to string) error{
		"page":    page,
		"crawler": crawler,
		"feed": func(_ *testing.T, c *Client, _ int, to string) error {
			_, err := c.Get(context.Background(), Request{URL: to, Large: true, Accept: "application/xml"})
			return err
		},
		"interface": func(_ *testing.T, c *Client, _ int, to string) error {
			_, err := c.Call(context.Background(), Call{URL: to})
			return err
		},
		"batch": func(_ *testing.T, c *Client, n int, to string) error {
			calls := []Call{{URL: fmt.Sprintf("http://api.example/%d", n)}, {URL: fmt.Sprintf("http://api.example/%d/b", n)}}
			return c.Batch(context.Background(), calls, 2, func([]int) Call { return Call{URL: to} }, func(body []byte, places []int) ([][]byte, error) {
				return [][]byte{body, body}, nil
			})
		},
		"post": post,
	}
	for _, status := range []int{301, 302, 303, 307, 308} {
		host := fmt.Sprintf("hop%d.example", status)
		leads := func(n int, to string) string {
			path := fmt.Sprintf("/%d", n)
			w.pages[host+path] = redirects(status, to)
			w.pages[host+path+"/first"] = redirects(status, path)
			return "http://" + host + path
		}
		routes[fmt.Sprintf("page after %d", status)] = func(t *testing.T, c *Client, n int, to string) error { return page(t, c, n, leads(n, to)) }
		routes[fmt.Sprintf("page after two %d", status)] = func(t *testing.T, c *Client, n int, to string) error { return page(t, c, n, leads(n, to)+"/first") }
		routes[fmt.Sprintf("crawler after %d", status)] = func(t *testing.T, c *Client, n int, to string) error { return crawler(t, c, n, leads(n, to)) }
		routes[fmt.Sprintf("robots.txt after %d", status)] = func(t *testing.T, c *Client, n int, to string) error {
			host := fmt.Sprintf("robots%d-%d.example", status, n)
			w.pages[host+"/robots.txt"], w.pages[host] = redirects(status, to), shows("behind it")
			return page(t, c, n, "http://"+host+"/page")
		}
		routes[fmt.Sprintf("token after %d", status)] = func(t *testing.T, c *Client, n int, to string) error {
			c.unstored = []string{leads(n, to)}
			return post(t, c, n, c.unstored[0])
		}
	}
	return routes
}

// TestForbiddenAddresses asks for every spelling of an address inside, by every route. Nothing is
// connected to, and each is refused by that reason. Its child runs with the environment's proxies
// pointing inside.
func TestForbiddenAddresses(t *testing.T) {
	port, connections := everywhere(t)
	w := newWeb(t)
	names := &resolver{asked: map[string]int{}}
	hosts := forbiddenHosts(t)
	routes := forbiddenRoutes(w)
	for i, name := range slices.Sorted(maps.Keys(routes)) {
		t.Run(name, func(t *testing.T) {
			c := w.client(t, memory(t))
			c.guard.lookup = names.lookup
			c.guard.dial = dialOnly(t, w, c.guard.dial)
			for n, what := range slices.Sorted(maps.Keys(hosts)) {
				for k, to := range []string{"http://" + hosts[what] + ":" + port + "/", "https://" + hosts[what] + ":" + port + "/x?y=z"} {
					err := routes[name](t, c, 2*n+k, to)
					var e *Error
					if !errors.As(err, &e) {
						if what == "escaped" && (strings.HasPrefix(name, "crawler") || name == "post" || strings.HasPrefix(name, "token")) {
							continue // net/http reads no such host, so that it sends nothing
						}
						t.Errorf("%s (%s): error %v, want a refusal", what, to, err)
						continue
					}
					if e.Reason != ReasonBlockedAddress {
						t.Errorf("%s (%s): reason %s, want %s: %v", what, to, e.Reason, ReasonBlockedAddress, e)
					}
				}
			}
			// A name that is public when it is looked up first and inside the next time: whatever is tried
			// again looks again.
			host := fmt.Sprintf("turn%d.test", i)
			for try := range 3 {
				if err := routes[name](t, c, 900+try, fmt.Sprintf("http://%s:%s/%d", host, port, try)); err == nil {
					t.Errorf("%s was answered", host)
				}
			}
			if names.asked[host] < 2 {
				t.Errorf("%s was looked up %d times, want more than once", host, names.asked[host])
			}
		})
	}
	t.Run("page that names another by meta", func(t *testing.T) {
		w.pages["meta.example"] = answers(200, strings.Replace(article("stays"), "<head>", `<head><meta http-equiv="refresh" content="0; url=http://127.0.0.1:`+port+`/">`, 1), "Content-Type", "text/html")
		c := w.client(t, memory(t))
		page, err := c.Get(t.Context(), Request{URL: "http://meta.example/"})
		if err != nil || page.URL != "http://meta.example/" {
			t.Errorf("page %v, %v", page, err)
		}
	})
	t.Run("interface that redirects", func(t *testing.T) {
		c := w.client(t, memory(t))
		w.pages["api.example/moved"] = redirects(307, "http://127.0.0.1:"+port+"/")
		r, err := c.Call(t.Context(), Call{URL: "http://api.example/moved"})
		if err != nil || r.Status != 307 {
			t.Errorf("reply %v, %v", r, err)
		}
	})
	if os.Getenv("ASSAY_PROXIED") == "" {
		t.Run("proxies of the environment", func(t *testing.T) {
			at := "http://127.0.0.1:" + port
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestForbiddenAddresses$", "-test.count=1")
			cmd.Env = append(os.Environ(), "ASSAY_PROXIED=1", "NO_PROXY=", "no_proxy=")
			for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
				cmd.Env = append(cmd.Env, name+"="+at, strings.ToLower(name)+"="+at)
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("the listener counts %d connections, want 0", n)
	}
}

// dialOnly lets a client reach the test's web, answers for public addresses that nobody is there, and
// lets everything else through, so that the listener sees what the guard missed.
func dialOnly(t *testing.T, w *web, dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		at, err := netip.ParseAddrPort(addr)
		if err == nil && publicAddress(at.Addr()) {
			return nil, fmt.Errorf("dial %s: nobody is there", addr)
		}
		if addr != w.addr() {
			t.Errorf("%s was dialled", addr)
		}
		return dial(ctx, network, addr)
	}
}
