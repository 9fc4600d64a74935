package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

const dialTimeout = 10 * time.Second

// refusedNets are the networks that no address found on the web may lead to, beside those that
// netip.Addr has a name for.
var refusedNets = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // carrier-grade NAT
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("168.63.129.16/32"), // a cloud's metadata outside the private ranges
	netip.MustParsePrefix("::/96"),            // unspecified, loopback, IPv4-compatible
	netip.MustParsePrefix("64:ff9b::/96"),     // NAT64: an IPv4 address in disguise
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/23"), // Teredo and other protocol assignments
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), // 6to4: an IPv4 address in disguise
	netip.MustParsePrefix("3fff::/20"),
	netip.MustParsePrefix("5f00::/16"),
	netip.MustParsePrefix("fec0::/10"),
}

// publicAddress reports whether an address may be dialled for a link found on the web.
func publicAddress(ip netip.Addr) bool {
	if ip.Zone() != "" {
		return false
	}
	ip = ip.Unmap()
	if !ip.IsValid() || ip.IsUnspecified() || ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsMulticast() {
		return false
	}
	return !slices.ContainsFunc(refusedNets, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// A guard decides which addresses are dialled. It resolves a name itself, once, and dials only what
// it has looked at, so that a name cannot point elsewhere between the check and the connection.
type guard struct {
	private map[string]bool   // exact host:port that may be anywhere
	resolve map[string]string // host, or *.domain, => ip:port to dial instead
	contact bool              // without one, only listed hosts are asked
	lookup  func(ctx context.Context, host string) ([]netip.Addr, error)
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	next    http.RoundTripper
}

func newGuard(o Options) *guard {
	g := &guard{private: map[string]bool{}, resolve: map[string]string{}, contact: o.Contact != "", lookup: lookupSystem}
	g.dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	for _, hp := range o.AllowPrivate {
		g.private[strings.ToLower(hp)] = true
	}
	for host, to := range o.Resolve {
		g.resolve[strings.ToLower(host)] = to
	}
	return g
}

// check refuses an address by its looks: scheme, literal address, name for this machine. Nothing is
// looked up.
func (g *guard) check(address string) error {
	scheme, _, ok := strings.Cut(address, "://")
	if !ok || scheme != "http" && scheme != "https" {
		scheme, _, _ = strings.Cut(address, ":")
		return &Error{URL: address, Reason: ReasonBadScheme, Detail: "only http and https are fetched, not " + scheme}
	}
	host := hostOf(address)
	if g.listed(host, hostPort(address)) {
		return nil
	}
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil && !publicAddress(ip) {
		return &Error{URL: address, Reason: ReasonBlockedAddress, Detail: ip.String()}
	}
	if name := strings.TrimSuffix(host, "."); name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return &Error{URL: address, Reason: ReasonBlockedAddress, Detail: name}
	}
	if !g.contact {
		return &Error{URL: address, Reason: ReasonNoContact, Detail: "no contact is configured, so only hosts of the allow-list are asked"}
	}
	return nil
}

// listed reports whether a host was named by the configuration.
func (g *guard) listed(host, hostPort string) bool {
	_, ok := g.elsewhere(host)
	return ok || g.private[hostPort]
}

// elsewhere returns the ip:port at which a host is dialled instead of its own address.
func (g *guard) elsewhere(host string) (string, bool) {
	if to, ok := g.resolve[host]; ok {
		return to, true
	}
	for name := host; ; {
		i := strings.IndexByte(name, '.')
		if i < 0 {
			return "", false
		}
		name = name[i+1:]
		if to, ok := g.resolve["*."+name]; ok {
			return to, true
		}
	}
}

// RoundTrip checks the address again, because credentials and redirects come between.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := g.check(req.URL.Scheme + "://" + strings.ToLower(req.URL.Host) + "/"); err != nil {
		return nil, err
	}
	return g.next.RoundTrip(req)
}

// dialContext connects to a host and port for the transport.
func (g *guard) dialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	host = strings.ToLower(host)
	if to, ok := g.elsewhere(host); ok {
		return g.dial(ctx, network, to)
	}
	bracketed := host
	if strings.Contains(host, ":") {
		bracketed = "[" + host + "]"
	}
	if g.private[bracketed+":"+port] {
		return g.dial(ctx, network, addr)
	}
	ips, err := g.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	var failed []error
	for _, ip := range ips {
		conn, err := g.dial(ctx, network, net.JoinHostPort(ip.String(), port))
		if err == nil {
			return conn, nil
		}
		failed = append(failed, err)
	}
	return nil, errors.Join(failed...)
}

// addresses resolves a host and keeps what may be dialled, IPv4 first: it works in more places.
func (g *guard) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	ips := []netip.Addr{}
	if ip, err := netip.ParseAddr(host); err == nil {
		ips = append(ips, ip)
	} else if ips, err = g.lookup(ctx, host); err != nil {
		return nil, err
	}
	var good []netip.Addr
	for _, ip := range ips {
		if publicAddress(ip) {
			good = append(good, ip.Unmap())
		}
	}
	if len(good) == 0 {
		return nil, &Error{URL: host, Reason: ReasonBlockedAddress, Detail: fmt.Sprintf("%s is at %v", host, ips)}
	}
	slices.SortStableFunc(good, func(a, b netip.Addr) int {
		switch {
		case a.Is4() == b.Is4():
			return 0
		case a.Is4():
			return -1
		}
		return 1
	})
	return good, nil
}

// lookupSystem asks the system's resolver.
func lookupSystem(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}
