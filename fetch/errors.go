package fetch

import (
	"fmt"
	"strings"
	"time"
)

// Reasons of an Error. They are stable: reports, recorded failures and recorded exclusions use them.
const (
	ReasonRobots           = "robots"             // robots.txt refuses; Rule quotes the line
	ReasonGone             = "gone"               // 404, 410 or 451
	ReasonBlocked          = "blocked"            // 401, 403, or a page that is a wall instead of content
	ReasonBlockedAddress   = "blocked_address"    // loopback, private, metadata and the like
	ReasonBadScheme        = "bad_scheme"         // neither http nor https
	ReasonTooLarge         = "too_large"          // more bytes than Limits allow, compressed or decompressed
	ReasonBadURL           = "bad_url"            // not an address, or one that carries a password
	ReasonRedirectLoop     = "redirect_loop"      // a redirect leads back to a hop of its own chain
	ReasonTooManyRedirects = "too_many_redirects" // more hops than Limits.Redirects
	ReasonNotStored        = "not_stored"         // replay, and nothing is stored for the request
	ReasonNoContact        = "no_contact"         // no contact is set, so only listed hosts may be asked
	ReasonTimeout          = "timeout"
	ReasonTooSlow          = "too_slow"  // the body began and did not come on; it is not asked for again in this run
	ReasonStatus           = "status"    // any other HTTP status that is not an answer
	ReasonNetwork          = "network"   // no HTTP answer at all
	ReasonNoHost           = "no_host"   // no name server knows the host
	ReasonParked           = "parked"    // the host asked for a longer pause than we wait
	ReasonHostDown         = "host_down" // not sent: the host could not be reached several times in a row in this run
	ReasonTruncated        = "truncated" // the body ended early
)

// An Error says why an address gave no page. Whether that is an outcome to record for good or a
// failure to try again is told by Excluded and FailureClass.
type Error struct {
	URL    string
	Reason string // one of the Reason constants
	Detail string // for a person
	Rule   string // the line of robots.txt that refuses, with its number
	Status int    // HTTP status, 0 if there was none
	Tries  int    // attempts made, 0 if nothing was sent
	Wait   time.Duration
	Err    error // cause, may be nil
}

// Error names the address, the reason and what is known about it.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "fetch %s: %s", e.URL, e.Reason)
	if e.Status != 0 {
		fmt.Fprintf(&b, " (status %d)", e.Status)
	}
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	if e.Rule != "" {
		b.WriteString(": " + e.Rule)
	}
	if e.Wait > 0 {
		fmt.Fprintf(&b, " (for %s)", e.Wait.Round(time.Second))
	}
	if e.Tries > 1 {
		fmt.Fprintf(&b, " after %d attempts", e.Tries)
	}
	return b.String()
}

// Unwrap gives the cause, so that a caller still finds a cancelled context.
func (e *Error) Unwrap() error { return e.Err }

// Excluded returns the reason when the address is known and understood to give no page.
func (e *Error) Excluded() string {
	switch e.Reason {
	case ReasonRobots, ReasonGone, ReasonBlocked, ReasonBlockedAddress, ReasonBadScheme, ReasonTooLarge:
		return e.Reason
	}
	return ""
}

// FailureClass tells the engine whether another run may succeed: "transient", "permanent" or "blocked".
func (e *Error) FailureClass() string {
	switch e.Reason {
	case ReasonTimeout, ReasonTooSlow, ReasonNetwork, ReasonNoHost, ReasonParked, ReasonHostDown, ReasonTruncated, ReasonNotStored, ReasonNoContact:
		return "transient"
	case ReasonStatus:
		if e.Status == 0 || e.Status >= 500 || retryable(e.Status) {
			return "transient"
		}
	case ReasonBlocked, ReasonBlockedAddress, ReasonRobots:
		return "blocked"
	}
	return "permanent"
}

// Attempts returns how many requests were sent.
func (e *Error) Attempts() int { return e.Tries }
